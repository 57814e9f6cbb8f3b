package io.entresol.heap;

import java.util.function.Consumer;

/** An accessor of regular allocations of a transactional heap. */
public final class TransactionalAccessor extends AnyAccessor {
    TransactionalAccessor(TransactionalHeap heap) {
        super(heap, false);
    }

    @Override
    public TransactionalHeap heap() {
        return (TransactionalHeap) super.heap();
    }

    /** Gives {@code body} the whole block to write to. */
    public void withRange(Consumer<Range> body) {
        withRange(0, size(), body);
    }
}
