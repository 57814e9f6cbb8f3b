package io.entresol.grid;

/** A node does not know who asks, or does not let that user do it. */
final class ForbiddenException extends GridException {
    private static final long serialVersionUID = 1;

    ForbiddenException(String message) {
        super(message);
    }
}
