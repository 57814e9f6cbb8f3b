package io.entresol.heap;

/** An accessor that names one allocation for good. Equal blocks name the same allocation. */
public abstract class AnyMemoryBlock extends MemoryAccessor {
    AnyMemoryBlock(AnyHeap heap, boolean compact) {
        super(heap, compact);
    }

    /** Copies from another block, or from this one; the ranges may overlap. */
    public void copyFromMemoryBlock(
            AnyMemoryBlock source, long sourceOffset, long offset, long length) {
        copyFrom(source, sourceOffset, offset, length);
    }

    @Override
    public boolean equals(Object other) {
        if (this == other) {
            return true;
        }
        if (!(other instanceof AnyMemoryBlock)) {
            return false;
        }
        AnyMemoryBlock block = (AnyMemoryBlock) other;
        return isValid() && block.isValid() && heap() == block.heap()
                && handle() == block.handle();
    }

    @Override
    public int hashCode() {
        return isValid() ? Long.hashCode(heap().base() + handle()) : 0;
    }
}
