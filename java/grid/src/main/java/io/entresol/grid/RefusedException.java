package io.entresol.grid;

/** What a node answered that it did not do; not that it did not answer. */
final class RefusedException extends GridException {
    private static final long serialVersionUID = 1;

    RefusedException(String message) {
        super(message);
    }
}
