package io.entresol.heap;

import io.entresol.heap.engine.Failure;

/**
 * A write or sync failed while a transaction was to become durable. This process sees the
 * transaction as committed, and can commit nothing more. Only the next opening of the heap shows
 * whether the transaction is there.
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
