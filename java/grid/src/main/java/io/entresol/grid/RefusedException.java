package io.entresol.grid;

/** A node answered that it refuses a request. (A missing answer is another failure.) */
final class RefusedException extends GridException {
    private static final long serialVersionUID = 1;

    RefusedException(String message) {
        super(message);
    }
}
