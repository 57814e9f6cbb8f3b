package io.entresol.heap;

/**
 * Two transactions want to change the same maps, and would wait for each other. The older
 * transaction goes on. This one must be undone, and may run again: {@link Transaction#repeatable}.
 */
public class ConflictException extends HeapException {
    private static final long serialVersionUID = 1L;

    /** With what stands in the way. */
    public ConflictException(String message) {
        super(message);
    }
}
