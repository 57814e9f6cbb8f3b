package io.entresol.heap;

/** An accessor of compact allocations of a transactional heap. */
public final class TransactionalCompactAccessor extends AnyAccessor {
    TransactionalCompactAccessor(TransactionalHeap heap) {
        super(heap, true);
    }

    @Override
    public TransactionalHeap heap() {
        return (TransactionalHeap) super.heap();
    }
}
