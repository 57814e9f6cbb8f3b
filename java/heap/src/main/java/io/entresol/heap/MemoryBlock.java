package io.entresol.heap;

import java.util.function.Consumer;

/** A block of regular allocations of a raw heap. */
public final class MemoryBlock extends AnyMemoryBlock {
    MemoryBlock(Heap heap, long handle) {
        super(heap, false);
        place(handle);
    }

    MemoryBlock(Heap heap, long handle, long size) {
        super(heap, false);
        placeKnown(handle, size);
    }

    @Override
    public Heap heap() {
        return (Heap) super.heap();
    }

    /** Makes the whole block durable. */
    public void flush() {
        flush(0, size());
    }

    /** Logs the whole block in the current transaction, before it is stored to. */
    public void addToTransaction() {
        addToTransaction(0, size());
    }

    /** Makes a range durable. */
    public void flush(long offset, long length) {
        flushRange(offset, length);
    }

    /** Logs a range in the current transaction, before it is stored to. */
    public void addToTransaction(long offset, long length) {
        addRange(offset, length);
    }

    /** Gives {@code body} the whole block to write to. */
    public void withRange(Consumer<Range> body) {
        withRange(0, size(), body);
    }

    /** Frees it, in a transaction (the current one, or one of its own) or at once. */
    public void free(boolean transactional) {
        freeIn(transactional);
    }
}
