package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import io.entresol.heap.Kills;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A JVM that makes garbage and collects it is killed again and again during collections. All
 * objects that the directory leads to are there each time, and the next collection frees the rest.
 */
final class CollectKillTest {
    private static final HeapOptions OPTIONS =
            HeapOptions.DEFAULT.durability(Durability.BUFFERED);
    private static final int LENGTH = 200;
    private static final int GARBAGE = 4000;

    @TempDir
    Path folder;

    @Test
    void aKillWhileGarbageIsCollectedDoesNoHarm() throws Exception {
        String path = folder.resolve("heap").toString();
        try (ObjectHeap objects = ObjectHeap.create(path, 32L << 20, OPTIONS)) {
            chain(objects);
        }
        long[] garbage = {0};
        new Kills(44).forEach((round, random) -> {
            assertEquals("collect", Kills.after(
                    1 + random.nextInt(3), random.nextInt(200_000), Child.class, path));
            try (ObjectHeap objects = ObjectHeap.open(path, OPTIONS)) {
                assertEquals(LENGTH, length(objects), "round " + round);
                Collected collected = objects.collect();
                garbage[0] += collected.freedBlocks();
                assertEquals(LENGTH, length(objects), "round " + round);
                assertEquals(LENGTH, collected.keptObjects(), "round " + round);
                assertEquals("", objects.heap().check());
            }
        });
        assertTrue(garbage[0] > 0, "no kill came before the end of a collection");
    }

    private static void chain(ObjectHeap objects) {
        objects.run(() -> {
            Pair last = null;
            for (int index = 0; index < LENGTH; index++) {
                Pair pair = Pair.create(objects);
                pair.first(last);
                last = pair;
            }
            objects.directory().put("chain", last);
        });
    }

    private static int length(ObjectHeap objects) {
        int length = 0;
        Pair pair = objects.directory().get("chain", Pair.class);
        for (; pair != null; pair = pair.first()) {
            length++;
        }
        return length;
    }

    /** The program that is killed. */
    static final class Child {
        private Child() {
        }

        public static void main(String[] arguments) {
            ObjectHeap objects = ObjectHeap.open(arguments[0], OPTIONS);
            while (true) {
                for (int index = 0; index < GARBAGE; index++) {
                    PersistentTuple1.of(objects, "garbage " + index);
                }
                chain(objects);
                System.gc();
                System.out.println("collect");
                objects.collect();
            }
        }
    }
}
