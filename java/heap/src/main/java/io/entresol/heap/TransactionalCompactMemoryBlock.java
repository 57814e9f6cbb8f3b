package io.entresol.heap;

/** A block of compact allocations of a transactional heap. */
public final class TransactionalCompactMemoryBlock extends AnyMemoryBlock {
    TransactionalCompactMemoryBlock(TransactionalHeap heap, long handle) {
        super(heap, true);
        place(handle);
    }

    TransactionalCompactMemoryBlock(TransactionalHeap heap, long handle, long size) {
        super(heap, true);
        placeKnown(handle, size);
    }

    @Override
    public TransactionalHeap heap() {
        return (TransactionalHeap) super.heap();
    }

    /** Frees it, in the current transaction or one of its own. */
    public void free() {
        freeMemory();
    }
}
