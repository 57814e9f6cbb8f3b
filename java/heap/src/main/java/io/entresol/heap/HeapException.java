package io.entresol.heap;

/** A heap could not be created, opened, used or closed. */
public class HeapException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** With what went wrong. */
    public HeapException(String message) {
        super(message);
    }

    /** With what went wrong, and why. */
    public HeapException(String message, Throwable cause) {
        super(message, cause);
    }
}
