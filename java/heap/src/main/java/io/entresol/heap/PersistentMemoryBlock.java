package io.entresol.heap;

import java.util.function.Consumer;

/** A block of regular allocations of a persistent heap. */
public final class PersistentMemoryBlock extends PersistentBlock {
    PersistentMemoryBlock(PersistentHeap heap, long handle) {
        super(heap, false);
        place(handle);
    }

    PersistentMemoryBlock(PersistentHeap heap, long handle, long size) {
        super(heap, false);
        placeKnown(handle, size);
    }

    /** Gives {@code body} the whole block to write to. */
    public void withRange(Consumer<Range> body) {
        withRange(0, size(), body);
    }

    /** Gives {@code body} the whole block to write to in a transaction. */
    public void transactionalWithRange(Consumer<Range> body) {
        transactionalWithRange(0, size(), body);
    }
}
