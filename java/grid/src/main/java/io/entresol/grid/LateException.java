package io.entresol.grid;

/** A node did not answer a request in time. */
final class LateException extends GridException {
    private static final long serialVersionUID = 1;

    LateException(String message, Throwable cause) {
        super(message, cause);
    }
}
