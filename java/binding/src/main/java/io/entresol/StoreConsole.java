package io.entresol;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.NativeConsole;
import io.entresol.heap.engine.Text;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;

/**
 * A page of HTML of what the stores of this process do, for a program that serves it. Figures and
 * looks are JSON objects, which {@code entresol.h} describes. Whatever names and sentences of them
 * hold, they are text in the page. Thread-safe.
 */
public final class StoreConsole {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final long NANOS_OF_A_MILLISECOND = 1_000_000;
    private static final int STYLE = 3;
    private static final int SCRIPT = 4;

    private final long address;
    private final long begun = System.nanoTime();

    /** Parts that are made of a look. */
    public enum Part {
        /** The page. */
        PAGE(1),
        /** What becomes new of it. */
        NOW(2);

        private final int number;

        Part(int number) {
            this.number = number;
        }
    }

    /** A console whose page has that title. */
    public StoreConsole(String title) {
        long opened;
        try (Text text = new Text(title)) {
            opened = StoreException.checked(NativeConsole.open(text.address(), text.length()));
        }
        address = opened;
        CLEANER.register(this, () -> NativeConsole.release(opened));
    }

    /** Takes the figures of now, once a second: charts are of them. */
    public void take(String figures) {
        try (Text text = new Text(figures)) {
            StoreException.checked(
                    NativeConsole.take(address, text.address(), text.length(), now()));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The page of a look, or a part of it. */
    public String show(Part part, String look) {
        return show(part.number, look);
    }

    /** What the page asks for at {@code /console/style.css}. */
    public String style() {
        return show(STYLE, "");
    }

    /** What it asks for at {@code /console/script.js}. */
    public String script() {
        return show(SCRIPT, "");
    }

    private String show(int part, String look) {
        try (Text text = new Text(look)) {
            return Failure.text(StoreException.checked(
                    NativeConsole.show(address, part, text.address(), text.length(), now())));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private long now() {
        return (System.nanoTime() - begun) / NANOS_OF_A_MILLISECOND;
    }
}
