package io.entresol.grid;

/** A failure, with what to do next: a sentence for people. */
public sealed class GridException extends RuntimeException permits RefusedException,
        ForbiddenException, LateException {
    private static final long serialVersionUID = 1;

    /** A sentence. */
    public GridException(String message) {
        super(message);
    }

    /** A sentence, and what led to it. */
    public GridException(String message, Throwable cause) {
        super(message, cause);
    }
}
