package io.entresol.heap;

/** A memory pool could not be created, opened or flushed. */
public class MemoryPoolException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** With what went wrong. */
    public MemoryPoolException(String message) {
        super(message);
    }

    /** With what went wrong, and why. */
    public MemoryPoolException(String message, Throwable cause) {
        super(message, cause);
    }
}
