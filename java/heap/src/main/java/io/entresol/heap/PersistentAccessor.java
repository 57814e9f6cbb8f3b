package io.entresol.heap;

import java.util.function.Consumer;
import java.util.function.Function;

/** An accessor of regular allocations of a persistent heap. */
public final class PersistentAccessor extends AnyAccessor {
    PersistentAccessor(PersistentHeap heap) {
        super(heap, false);
    }

    @Override
    public PersistentHeap heap() {
        return (PersistentHeap) super.heap();
    }

    /** Gives {@code body} the whole block to write to. */
    public void withRange(Consumer<Range> body) {
        withRange(0, size(), body);
    }

    /** Gives {@code body} a window to write to in a transaction. */
    public <T> T transactionalWithRange(long offset, long length, Function<Range, T> body) {
        return loggedRange(offset, length, body);
    }

    /** Gives {@code body} a window to write to in a transaction. */
    public void transactionalWithRange(long offset, long length, Consumer<Range> body) {
        loggedRange(offset, length, of(body));
    }

    /** Gives {@code body} the whole block to write to in a transaction. */
    public void transactionalWithRange(Consumer<Range> body) {
        transactionalWithRange(0, size(), body);
    }

    /** Frees it, in a transaction (the current one, or one of its own) or at once. */
    public void freeMemory(boolean transactional) {
        freeIn(transactional);
    }
}
