package io.entresol.collections;

import java.util.Objects;

/** The common part of arrays: a fixed number of elements of one size, one after another. */
public abstract class PersistentElements extends PersistentObject {
    private final int elementBytes;

    PersistentElements(ObjectHeap objects, long handle, int elementBytes) {
        super(objects, handle);
        this.elementBytes = elementBytes;
    }

    /** Number of elements. */
    public final int length() {
        return (int) ((block().size() - HEADER_BYTES) / elementBytes);
    }

    /** The class of the elements. */
    abstract Class<?> elementType();

    abstract boolean isMutable();

    @Override
    protected void trace(Tracer tracer) {
    }

    final int elementBytes() {
        return elementBytes;
    }

    /** Offset of an element that is there. */
    final long at(int index) {
        return offset(Objects.checkIndex(index, length()), elementBytes);
    }

    static long offset(int index, int elementBytes) {
        return HEADER_BYTES + (long) index * elementBytes;
    }

    /** Bytes of the block for so many elements. */
    static long bytes(int length, int elementBytes) {
        if (length < 0) {
            throw new NegativeArraySizeException(String.valueOf(length));
        }
        return offset(length, elementBytes);
    }
}
