package io.entresol.grid;

/** What a node was asked for and had not answered when nobody waited any longer. */
final class LateException extends GridException {
    private static final long serialVersionUID = 1;

    LateException(String message, Throwable cause) {
        super(message, cause);
    }
}
