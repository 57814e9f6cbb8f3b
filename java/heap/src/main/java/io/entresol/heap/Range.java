package io.entresol.heap;

import io.entresol.heap.engine.Memory;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * A window of a block that a body may write until it returns. Offsets are those of the block and
 * must lie inside the window. Stores are plain: the window as a whole is logged or made durable
 * around the body.
 */
public final class Range {
    private final MemoryAccessor accessor;
    private final long start;
    private final long length;
    private final long address;
    private boolean valid = true;

    Range(MemoryAccessor accessor, long start, long length, long address) {
        this.accessor = accessor;
        this.start = start;
        this.length = length;
        this.address = address;
    }

    /** Whether its body still runs. */
    public boolean isValid() {
        return valid;
    }

    /** The window's first offset; -1 once its body has ended. */
    public long startOffset() {
        return valid ? start : -1;
    }

    /** Bytes of the window. */
    public long rangeLength() {
        return length;
    }

    /** Stores a byte. */
    public void setByte(long offset, byte value) {
        Memory.putByte(at(offset, 1), value);
    }

    /** Stores a byte: 1 or 0. */
    public void setBoolean(long offset, boolean value) {
        setByte(offset, (byte) (value ? 1 : 0));
    }

    /** Stores a short. */
    public void setShort(long offset, short value) {
        Memory.putShort(at(offset, 2), value);
    }

    /** Stores a char. */
    public void setChar(long offset, char value) {
        Memory.putChar(at(offset, 2), value);
    }

    /** Stores a int. */
    public void setInt(long offset, int value) {
        Memory.putInt(at(offset, 4), value);
    }

    /** Stores a long. */
    public void setLong(long offset, long value) {
        Memory.putLong(at(offset, 8), value);
    }

    /** Stores a float. */
    public void setFloat(long offset, float value) {
        Memory.putFloat(at(offset, 4), value);
    }

    /** Stores a double. */
    public void setDouble(long offset, double value) {
        Memory.putDouble(at(offset, 8), value);
    }

    /** Copies from an allocation. */
    public void copyFrom(MemoryAccessor source, long sourceOffset, long offset, long bytes) {
        requireValid();
        source.requireValid();
        long from = source.span(sourceOffset, bytes);
        Memory.copy(from, span(offset, bytes), bytes);
    }

    /** Copies from a block. */
    public void copyFromMemoryBlock(
            AnyMemoryBlock source, long sourceOffset, long offset, long bytes) {
        copyFrom(source, sourceOffset, offset, bytes);
    }

    /** Copies from an array. */
    public void copyFromArray(byte[] array, int index, long offset, int bytes) {
        requireValid();
        Objects.checkFromIndexSize(index, bytes, array.length);
        Memory.copyIn(array, index, span(offset, bytes), bytes);
    }

    /** Copies what remains in a buffer, whose position stays. */
    public void copyFromByteBuffer(ByteBuffer buffer, long offset) {
        requireValid();
        if (buffer.hasRemaining()) {
            MemoryAccessor.copyBytes(buffer, span(offset, buffer.remaining()));
        }
    }

    /** Sets {@code bytes} bytes to {@code value}. */
    public void setMemory(byte value, long offset, long bytes) {
        requireValid();
        Memory.fill(span(offset, bytes), bytes, value);
    }

    void end() {
        valid = false;
    }

    private long span(long offset, long bytes) {
        if (bytes <= 0) {
            throw new IndexOutOfBoundsException(bytes + " bytes at " + offset);
        }
        return at(offset, bytes);
    }

    private long at(long offset, long bytes) {
        requireValid();
        if (offset < start || bytes > length || offset - start > length - bytes) {
            throw new IndexOutOfBoundsException(bytes + " bytes at " + offset
                    + ", outside the range of " + length + " at " + start);
        }
        return address + (offset - start);
    }

    private void requireValid() {
        if (!valid) {
            throw new IllegalStateException("the range ended with the body it was given to");
        }
        accessor.requireValid();
    }
}
