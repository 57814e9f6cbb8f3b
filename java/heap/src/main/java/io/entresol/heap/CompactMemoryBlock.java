package io.entresol.heap;

/** A block of compact allocations of a raw heap. */
public final class CompactMemoryBlock extends AnyMemoryBlock {
    CompactMemoryBlock(Heap heap, long handle) {
        super(heap, true);
        place(handle);
    }

    CompactMemoryBlock(Heap heap, long handle, long size) {
        super(heap, true);
        placeKnown(handle, size);
    }

    @Override
    public Heap heap() {
        return (Heap) super.heap();
    }

    /** Makes a range durable. */
    public void flush(long offset, long length) {
        flushRange(offset, length);
    }

    /** Logs a range in the current transaction, before it is stored to. */
    public void addToTransaction(long offset, long length) {
        addRange(offset, length);
    }

    /** Frees it, in a transaction (the current one, or one of its own) or at once. */
    public void free(boolean transactional) {
        freeIn(transactional);
    }
}
