package io.entresol.heap;

/** A transaction could not begin, commit, or be used in its state. */
public class TransactionException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** With what went wrong. */
    public TransactionException(String message) {
        super(message);
    }

    /** With what went wrong, and why. */
    public TransactionException(String message, Throwable cause) {
        super(message, cause);
    }
}
