package io.entresol.heap;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Native;
import io.entresol.heap.engine.Text;
import java.io.File;
import java.nio.ByteBuffer;

/**
 * A file mapped as plain memory, without allocations or transactions; several processes may map the
 * same file. Stores are durable after {@link #flush}, or on return of the methods whose names end
 * in {@code NT}. A range that does not fit throws {@link IndexOutOfBoundsException}.
 */
public interface MemoryPool extends AutoCloseable {
    /** Creates a file of {@code size} bytes and maps it. */
    static MemoryPool createPool(String path, long size) {
        refuseDevice(path);
        if (size <= 0) {
            throw new IllegalArgumentException(path + ": a pool of " + size + " bytes");
        }
        if (new File(path).exists()) {
            throw new MemoryPoolException("Failed to create memory pool. " + path + " exists");
        }
        return map(path, size);
    }

    /** Maps an existing file. */
    static MemoryPool openPool(String path) {
        refuseDevice(path);
        if (!new File(path).isFile()) {
            throw new IllegalArgumentException(path + " is no regular file");
        }
        return map(path, 0);
    }

    /** Maps a device. */
    static MemoryPool mapDevice(String path) {
        if (!path.startsWith("/dev/")) {
            throw new IllegalArgumentException(path + " is no device");
        }
        return map(path, 0);
    }

    /** Whether a file is there that could be a pool. */
    static boolean exists(String path) {
        return new File(path).isFile();
    }

    /** Loads a byte. */
    byte getByte(long offset);

    /** Loads a short. */
    short getShort(long offset);

    /** Loads an int. */
    int getInt(long offset);

    /** Loads a long. */
    long getLong(long offset);

    /** Stores a byte. */
    void setByte(long offset, byte value);

    /** Stores a short. */
    void setShort(long offset, short value);

    /** Stores an int. */
    void setInt(long offset, int value);

    /** Stores a long. */
    void setLong(long offset, long value);

    /** Copies within the pool; the ranges may overlap. */
    void copyFromPool(long sourceOffset, long offset, long bytes);

    /** Copies from another pool. */
    void copyFromPool(MemoryPool source, long sourceOffset, long offset, long bytes);

    /** Copies from an array. */
    void copyFromByteArray(byte[] array, int index, long offset, int bytes);

    /** Copies what remains in a buffer, whose position stays. */
    void copyFromByteBuffer(ByteBuffer buffer, long offset);

    /** Copies to an array. */
    void copyToByteArray(long offset, byte[] array, int index, int bytes);

    /** Copies to a buffer, whose position moves on. */
    void copyToByteBuffer(long offset, ByteBuffer buffer, int bytes);

    /** Sets bytes to {@code value}. */
    void setMemory(byte value, long offset, long bytes);

    /** As {@link #copyFromPool(long, long, long)}, durable on return. */
    void copyFromPoolNT(long sourceOffset, long offset, long bytes);

    /** As {@link #copyFromPool(MemoryPool, long, long, long)}, durable on return. */
    void copyFromPoolNT(MemoryPool source, long sourceOffset, long offset, long bytes);

    /** As {@link #copyFromByteArray}, durable on return. */
    void copyFromByteArrayNT(byte[] array, int index, long offset, int bytes);

    /** As {@link #copyFromByteBuffer}, durable on return. */
    void copyFromByteBufferNT(ByteBuffer buffer, long offset);

    /** As {@link #setMemory}, durable on return. */
    void setMemoryNT(byte value, long offset, long bytes);

    /** The bytes themselves, without a copy; not to be used once the pool is closed. */
    ByteBuffer asByteBuffer(long offset, int bytes);

    /** Bytes of the pool. */
    long size();

    /** Makes a range durable. */
    void flush(long offset, long bytes);

    /** Unmaps the file. */
    @Override
    void close();

    private static void refuseDevice(String path) {
        if (path.startsWith("/dev/dax")) {
            throw new IllegalArgumentException(path + " is a device: use mapDevice");
        }
    }

    private static MemoryPool map(String path, long size) {
        try (Text text = new Text(path)) {
            long address = HeapFile.withRoom(
                    () -> Native.poolOpen(text.address(), text.length(), size));
            if (address < 0) {
                throw new MemoryPoolException("Failed to map memory pool. " + path + ": "
                        + Failure.of(address).sentence());
            }
            return new MappedPool(path, address);
        }
    }
}
