package io.entresol.heap;

import java.nio.file.Path;

/** Heaps of the tests. */
final class Heaps {
    static final long BYTES = 16L << 20;

    private Heaps() {
    }

    static String at(Path folder) {
        return folder.resolve("heap").toString();
    }

    static TransactionalHeap transactional(Path folder) {
        return TransactionalHeap.createHeap(at(folder), BYTES);
    }

    static PersistentHeap persistent(Path folder) {
        return PersistentHeap.createHeap(at(folder), BYTES);
    }

    static Heap raw(Path folder) {
        return Heap.createHeap(at(folder), BYTES);
    }
}
