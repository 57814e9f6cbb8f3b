package io.entresol.collections;

import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import java.nio.file.Path;

/** Heaps of the tests; nothing waits for a disk. */
final class Heaps {
    private static final HeapOptions OPTIONS = HeapOptions.DEFAULT.durability(Durability.NONE);

    private Heaps() {
    }

    static ObjectHeap create(Path folder) {
        return ObjectHeap.create(at(folder), 32L << 20, OPTIONS);
    }

    static ObjectHeap open(Path folder) {
        return ObjectHeap.open(at(folder), OPTIONS);
    }

    static String at(Path folder) {
        return folder.resolve("objects.heap").toString();
    }
}
