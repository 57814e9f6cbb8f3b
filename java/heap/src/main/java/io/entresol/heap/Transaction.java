package io.entresol.heap;

import java.util.function.Supplier;

/**
 * Changes to one heap that become durable together or not at all. {@link #run} takes the code
 * between begin and end as a body, which may run further bodies. A body that throws is undone: the
 * outermost body as a whole, an inner body back to its beginning, so that an outer body which
 * catches may go on. The transaction belongs to the Java thread that runs the body, be it platform
 * or virtual. There is no isolation: stores are visible to other threads at once.
 */
public final class Transaction {
    /** Where a transaction stands. */
    enum State {
        /** No body has run. */
        New,
        /** A body runs. */
        Active,
        /** The outermost body returned. */
        Committed,
        /** A body threw. */
        Aborted
    }

    private final AnyHeap heap;
    private State state = State.New;
    private int depth;

    private Transaction(AnyHeap heap) {
        this.heap = heap;
    }

    /** A transaction whose bodies are still to be run. */
    public static Transaction create(AnyHeap heap) {
        return new Transaction(java.util.Objects.requireNonNull(heap, "heap"));
    }

    /** Runs {@code body} in a transaction, or as part of the thread's current one. */
    public static void create(AnyHeap heap, Runnable body) {
        create(heap).run(body);
    }

    /** Runs {@code body} in a transaction, or as part of the thread's current one. */
    public static <T> T create(AnyHeap heap, Supplier<T> body) {
        return create(heap).run(body);
    }

    /**
     * Runs {@code body} in a transaction of its own, which is committed when this returns, whatever
     * becomes of the thread's current one. It must not change what that one holds or stored to.
     */
    public static <T> T apart(AnyHeap heap, Supplier<T> body) {
        Work outer = heap.suspendWork();
        try {
            return create(heap).run(body);
        } finally {
            heap.resumeWork(outer);
        }
    }

    /**
     * As {@link #create(AnyHeap, Supplier)}, but where that would wait in a circle with another
     * transaction, it is undone and {@code body} runs again, up to 10 s: what that does outside the
     * heap must bear being done more than once.
     */
    public static <T> T repeatable(AnyHeap heap, Supplier<T> body) {
        boolean inside = heap.work() != null;
        Patience patience = new Patience();
        while (true) {
            try {
                return create(heap, body);
            } catch (ConflictException conflict) {
                if (inside || patience.isOver() || Thread.currentThread().isInterrupted()) {
                    throw conflict;
                }
                patience.pause();
            }
        }
    }

    /** As {@link #create(AnyHeap, Runnable)}, under the name that the first programs for LLPL use. */
    public static void run(AnyHeap heap, Runnable body) {
        create(heap, body);
    }

    /** As {@link #create(AnyHeap, Supplier)}, under the name that the first programs for LLPL use. */
    public static <T> T run(AnyHeap heap, Supplier<T> body) {
        return create(heap, body);
    }

    /** Runs {@code body} as part of this transaction. */
    public void run(Runnable body) {
        run(() -> {
            body.run();
            return null;
        });
    }

    /** Runs {@code body} as part of this transaction; gives what it returned. */
    public <T> T run(Supplier<T> body) {
        return run(body, Durability.DEFAULT);
    }

    /** Runs {@code body}; an outermost one is committed at level {@code durability}. */
    public <T> T run(Supplier<T> body, Durability durability) {
        if (state == State.Committed || state == State.Aborted) {
            throw new TransactionException("the transaction is over: it is " + state
                    + "; make another");
        }
        Work outer = heap.work();
        return outer == null ? runOutermost(body, durability) : runInner(outer, body);
    }

    /** Whether a body may still be run. */
    public boolean isValid() {
        return state == State.New || state == State.Active;
    }

    State state() {
        return state;
    }

    private <T> T runOutermost(Supplier<T> body, Durability durability) {
        Work work = heap.beginWork();
        enter();
        try {
            T result = body.get();
            work.commit(durability);
            leave(State.Committed);
            return result;
        } catch (Throwable failure) {
            if (work.isCommitted()) {
                leave(State.Committed);
            } else {
                leave(State.Aborted);
                undo(work::abort, failure);
            }
            throw failure;
        } finally {
            heap.endWork(work);
        }
    }

    private <T> T runInner(Work outer, Supplier<T> body) {
        Work.Point point = outer.point();
        enter();
        try {
            T result = body.get();
            outer.merge(point);
            leave(State.Committed);
            return result;
        } catch (Throwable failure) {
            leave(State.Aborted);
            undo(() -> outer.rollback(point), failure);
            throw failure;
        }
    }

    private void enter() {
        depth++;
        state = State.Active;
    }

    private void leave(State end) {
        depth--;
        state = depth == 0 ? end : State.Active;
    }

    /** What the body threw is what the caller must see, whatever else goes wrong. */
    private static void undo(Runnable undoing, Throwable failure) {
        try {
            undoing.run();
        } catch (RuntimeException second) {
            failure.addSuppressed(second);
        }
    }
}
