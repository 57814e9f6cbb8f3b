package io.entresol.heap;

/** A block of compact allocations of a persistent heap. */
public final class PersistentCompactMemoryBlock extends PersistentBlock {
    PersistentCompactMemoryBlock(PersistentHeap heap, long handle) {
        super(heap, true);
        place(handle);
    }

    PersistentCompactMemoryBlock(PersistentHeap heap, long handle, long size) {
        super(heap, true);
        placeKnown(handle, size);
    }
}
