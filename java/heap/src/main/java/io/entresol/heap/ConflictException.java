package io.entresol.heap;

/**
 * Two transactions want to change the same maps, and would wait for each other. The older one goes
 * on; this one is to be undone, and may be run again: {@link Transaction#repeatable}.
 */
public class ConflictException extends HeapException {
    private static final long serialVersionUID = 1L;

    /** With what stands in the way. */
    public ConflictException(String message) {
        super(message);
    }
}
