package io.entresol.heap.engine;

import java.nio.ByteBuffer;

/**
 * Memory by absolute address, in the machine's byte order. Nothing is checked here: callers have
 * proved that the addresses are theirs. The ordered and atomic forms need a multiple of their size.
 */
public final class Memory {
    private Memory() {
    }

    /** Loads a byte. */
    public static byte getByte(long address) {
        return UnsafeMemory.getByte(address);
    }

    /** Stores a byte. */
    public static void putByte(long address, byte value) {
        UnsafeMemory.putByte(address, value);
    }

    /** Loads a short. */
    public static short getShort(long address) {
        return UnsafeMemory.getShort(address);
    }

    /** Stores a short. */
    public static void putShort(long address, short value) {
        UnsafeMemory.putShort(address, value);
    }

    /** Loads a char. */
    public static char getChar(long address) {
        return UnsafeMemory.getChar(address);
    }

    /** Stores a char. */
    public static void putChar(long address, char value) {
        UnsafeMemory.putChar(address, value);
    }

    /** Loads a int. */
    public static int getInt(long address) {
        return UnsafeMemory.getInt(address);
    }

    /** Stores a int. */
    public static void putInt(long address, int value) {
        UnsafeMemory.putInt(address, value);
    }

    /** Loads a long. */
    public static long getLong(long address) {
        return UnsafeMemory.getLong(address);
    }

    /** Stores a long. */
    public static void putLong(long address, long value) {
        UnsafeMemory.putLong(address, value);
    }

    /** Loads a float. */
    public static float getFloat(long address) {
        return UnsafeMemory.getFloat(address);
    }

    /** Stores a float. */
    public static void putFloat(long address, float value) {
        UnsafeMemory.putFloat(address, value);
    }

    /** Loads a double. */
    public static double getDouble(long address) {
        return UnsafeMemory.getDouble(address);
    }

    /** Stores a double. */
    public static void putDouble(long address, double value) {
        UnsafeMemory.putDouble(address, value);
    }

    /** Loads a int; later loads and stores stay later. */
    public static int getIntAcquire(long address) {
        return UnsafeMemory.getIntAcquire(address);
    }

    /** Stores a int; earlier loads and stores stay earlier. */
    public static void putIntRelease(long address, int value) {
        UnsafeMemory.putIntRelease(address, value);
    }

    /** Loads a int in one order with all other volatile accesses. */
    public static int getIntVolatile(long address) {
        return UnsafeMemory.getIntVolatile(address);
    }

    /** Stores a int in one order with all other volatile accesses. */
    public static void putIntVolatile(long address, int value) {
        UnsafeMemory.putIntVolatile(address, value);
    }

    /** Stores {@code value} if {@code expected} is there. */
    public static boolean compareAndSetInt(long address, int expected, int value) {
        return UnsafeMemory.compareAndSetInt(address, expected, value);
    }

    /** Adds, and gives what was there. */
    public static int getAndAddInt(long address, int delta) {
        return UnsafeMemory.getAndAddInt(address, delta);
    }

    /** Loads a long; later loads and stores stay later. */
    public static long getLongAcquire(long address) {
        return UnsafeMemory.getLongAcquire(address);
    }

    /** Stores a long; earlier loads and stores stay earlier. */
    public static void putLongRelease(long address, long value) {
        UnsafeMemory.putLongRelease(address, value);
    }

    /** Loads a long in one order with all other volatile accesses. */
    public static long getLongVolatile(long address) {
        return UnsafeMemory.getLongVolatile(address);
    }

    /** Stores a long in one order with all other volatile accesses. */
    public static void putLongVolatile(long address, long value) {
        UnsafeMemory.putLongVolatile(address, value);
    }

    /** Stores {@code value} if {@code expected} is there. */
    public static boolean compareAndSetLong(long address, long expected, long value) {
        return UnsafeMemory.compareAndSetLong(address, expected, value);
    }

    /** Adds, and gives what was there. */
    public static long getAndAddLong(long address, long delta) {
        return UnsafeMemory.getAndAddLong(address, delta);
    }

    /** Copies between addresses; the ranges may overlap. */
    public static void copy(long from, long to, long bytes) {
        UnsafeMemory.copy(from, to, bytes);
    }

    /** Copies to an array. */
    public static void copyOut(long from, byte[] to, int index, int bytes) {
        UnsafeMemory.copyOut(from, to, index, bytes);
    }

    /** Copies from an array. */
    public static void copyIn(byte[] from, int index, long to, int bytes) {
        UnsafeMemory.copyIn(from, index, to, bytes);
    }

    /** Sets every byte. */
    public static void fill(long address, long bytes, byte value) {
        UnsafeMemory.fill(address, bytes, value);
    }

    /** A direct buffer, in big-endian order as all new buffers are. */
    public static ByteBuffer buffer(long address, int bytes) {
        return UnsafeMemory.buffer(address, bytes);
    }

    /** What segments and buffers of one owner belong to; nothing before Java 22. */
    public static Object arena() {
        return null;
    }

    /** Makes all segments and buffers of an arena refuse further use, from Java 22 on. */
    public static void close(Object arena) {
        // Buffers that JNI made cannot be told.
    }

    /** A direct buffer of an arena. */
    public static ByteBuffer buffer(long address, int bytes, Object arena) {
        return UnsafeMemory.buffer(address, bytes);
    }

    /** A {@code java.lang.foreign.MemorySegment} of an arena, from Java 22 on. */
    public static Object segment(long address, long bytes, Object arena) {
        throw new UnsupportedOperationException("memory segments are there from Java 22 on; this is"
                + " Java " + Runtime.version().feature());
    }

    /** The same segment for reading only. */
    public static Object readOnly(Object segment) {
        return segment;
    }
}
