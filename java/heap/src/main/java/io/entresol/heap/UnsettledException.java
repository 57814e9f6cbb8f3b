package io.entresol.heap;

import io.entresol.heap.engine.Failure;

/**
 * A write or sync failed as a transaction was to become durable. This process sees it as committed,
 * and nothing is committed any more; whether it is there is known once the heap is opened again.
 */
public class UnsettledException extends TransactionException {
    private static final long serialVersionUID = 1L;

    /** With what failed. */
    public UnsettledException(String message) {
        super(message);
    }

    /** Throws if there is such a failure. */
    static void throwOf(Failure unsettled) {
        if (unsettled != null) {
            throw new UnsettledException(unsettled.sentence());
        }
    }
}
