package io.entresol.heap;

/** An accessor of compact allocations of a raw heap. */
public final class CompactAccessor extends AnyAccessor {
    CompactAccessor(Heap heap) {
        super(heap, true);
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
    public void freeMemory(boolean transactional) {
        freeIn(transactional);
    }
}
