package io.entresol.heap;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.Objects;

/** A mapped file. Threads that use it while it is closed find its bytes or zeros, or throw. */
final class MappedPool implements MemoryPool {
    private final String path;
    private final long address;
    private final long base;
    private final long size;
    private final Object arena = Memory.arena();
    private volatile boolean open = true;

    MappedPool(String path, long address) {
        this.path = path;
        this.address = address;
        this.base = Native.poolBase(address);
        this.size = Native.poolBytes(address);
        // Not when it is closed: other threads may be in the middle of an access.
        HeapFile.CLOSED.added();
        AnyHeap.attach(this, () -> {
            Native.poolRelease(address);
            HeapFile.CLOSED.removed();
        });
    }

    @Override
    public byte getByte(long offset) {
        return Memory.getByte(at(offset, 1));
    }

    @Override
    public short getShort(long offset) {
        return Memory.getShort(at(offset, 2));
    }

    @Override
    public int getInt(long offset) {
        return Memory.getInt(at(offset, 4));
    }

    @Override
    public long getLong(long offset) {
        return Memory.getLong(at(offset, 8));
    }

    @Override
    public void setByte(long offset, byte value) {
        Memory.putByte(at(offset, 1), value);
    }

    @Override
    public void setShort(long offset, short value) {
        Memory.putShort(at(offset, 2), value);
    }

    @Override
    public void setInt(long offset, int value) {
        Memory.putInt(at(offset, 4), value);
    }

    @Override
    public void setLong(long offset, long value) {
        Memory.putLong(at(offset, 8), value);
    }

    @Override
    public void copyFromPool(long sourceOffset, long offset, long bytes) {
        copyFromPool(this, sourceOffset, offset, bytes);
    }

    @Override
    public void copyFromPool(MemoryPool source, long sourceOffset, long offset, long bytes) {
        long from = ((MappedPool) source).at(sourceOffset, bytes);
        Memory.copy(from, at(offset, bytes), bytes);
    }

    @Override
    public void copyFromByteArray(byte[] array, int index, long offset, int bytes) {
        Objects.checkFromIndexSize(index, bytes, array.length);
        Memory.copyIn(array, index, at(offset, bytes), bytes);
    }

    @Override
    public void copyFromByteBuffer(ByteBuffer buffer, long offset) {
        MemoryAccessor.copyBytes(buffer, at(offset, buffer.remaining()));
    }

    @Override
    public void copyToByteArray(long offset, byte[] array, int index, int bytes) {
        Objects.checkFromIndexSize(index, bytes, array.length);
        Memory.copyOut(at(offset, bytes), array, index, bytes);
    }

    @Override
    public void copyToByteBuffer(long offset, ByteBuffer buffer, int bytes) {
        if (buffer.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        Objects.checkFromIndexSize(0, bytes, buffer.remaining());
        buffer.put(Memory.buffer(at(offset, bytes), bytes));
    }

    @Override
    public void setMemory(byte value, long offset, long bytes) {
        Memory.fill(at(offset, bytes), bytes, value);
    }

    @Override
    public void copyFromPoolNT(long sourceOffset, long offset, long bytes) {
        copyFromPool(sourceOffset, offset, bytes);
        flush(offset, bytes);
    }

    @Override
    public void copyFromPoolNT(MemoryPool source, long sourceOffset, long offset, long bytes) {
        copyFromPool(source, sourceOffset, offset, bytes);
        flush(offset, bytes);
    }

    @Override
    public void copyFromByteArrayNT(byte[] array, int index, long offset, int bytes) {
        copyFromByteArray(array, index, offset, bytes);
        flush(offset, bytes);
    }

    @Override
    public void copyFromByteBufferNT(ByteBuffer buffer, long offset) {
        copyFromByteBuffer(buffer, offset);
        flush(offset, buffer.remaining());
    }

    @Override
    public void setMemoryNT(byte value, long offset, long bytes) {
        setMemory(value, offset, bytes);
        flush(offset, bytes);
    }

    @Override
    public ByteBuffer asByteBuffer(long offset, int bytes) {
        ByteBuffer buffer = Memory.buffer(at(offset, bytes), bytes, arena);
        // The memory stays until nobody has the buffer any more.
        AnyHeap.attach(buffer, () -> Reference.reachabilityFence(this));
        return buffer;
    }

    @Override
    public long size() {
        return size;
    }

    @Override
    public void flush(long offset, long bytes) {
        at(offset, bytes);
        long result = Native.poolFlush(address, offset, bytes);
        Reference.reachabilityFence(this);
        if (result < 0) {
            throw new MemoryPoolException(path + ": " + Failure.of(result).sentence());
        }
    }

    @Override
    public synchronized void close() {
        if (open) {
            Memory.close(arena);
            open = false;
            long result = Native.poolClose(address);
            if (result < 0) {
                throw new MemoryPoolException(path + ": " + Failure.of(result).sentence());
            }
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof MappedPool && path.equals(((MappedPool) other).path);
    }

    @Override
    public int hashCode() {
        return path.hashCode();
    }

    private long at(long offset, long bytes) {
        if (!open) {
            throw new IllegalStateException(path + ": the pool is closed");
        }
        if (offset < 0 || bytes < 0 || offset > size - bytes) {
            throw new IndexOutOfBoundsException(
                    bytes + " bytes at " + offset + " of a pool with " + size);
        }
        return base + offset;
    }
}
