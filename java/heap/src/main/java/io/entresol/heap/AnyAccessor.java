package io.entresol.heap;

/** An accessor that names one allocation after another, without a new object for each. */
public abstract class AnyAccessor extends MemoryAccessor {
    AnyAccessor(AnyHeap heap, boolean compact) {
        super(heap, compact);
    }

    /** Names the allocation of {@code handle} from here on. */
    public void handle(long handle) {
        place(handle);
    }

    /** Names none. */
    public void resetHandle() {
        displace();
    }
}
