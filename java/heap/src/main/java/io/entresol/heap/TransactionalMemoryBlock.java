package io.entresol.heap;

import java.util.function.Consumer;

/** A block of regular allocations of a transactional heap. */
public final class TransactionalMemoryBlock extends AnyMemoryBlock {
    TransactionalMemoryBlock(TransactionalHeap heap, long handle) {
        super(heap, false);
        place(handle);
    }

    TransactionalMemoryBlock(TransactionalHeap heap, long handle, long size) {
        super(heap, false);
        placeKnown(handle, size);
    }

    private TransactionalMemoryBlock(TransactionalHeap heap) {
        super(heap, false);
    }

    /** A block that is read, whose bytes are kept. */
    static TransactionalMemoryBlock kept(TransactionalHeap heap, long handle) {
        TransactionalMemoryBlock block = new TransactionalMemoryBlock(heap);
        block.placeKept(handle);
        return block;
    }

    @Override
    public TransactionalHeap heap() {
        return (TransactionalHeap) super.heap();
    }

    /** Gives {@code body} the whole block to write to. */
    public void withRange(Consumer<Range> body) {
        withRange(0, size(), body);
    }

    /** Frees it, in the current transaction or one of its own. */
    public void free() {
        freeMemory();
    }
}
