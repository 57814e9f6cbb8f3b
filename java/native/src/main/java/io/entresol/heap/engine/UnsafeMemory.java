package io.entresol.heap.engine;

import java.nio.ByteBuffer;
import java.lang.reflect.Field;
import sun.misc.Unsafe;

/**
 * Memory by absolute address, in the machine's byte order, without Java 22's memory API. Nothing is
 * checked here: callers have proved that the addresses are theirs. The ordered and atomic forms
 * need a multiple of their size.
 *
 * <p>From these methods the build writes {@link Memory}, which calls them, or from Java 22 on uses
 * the Foreign Function and Memory API.
 */
final class UnsafeMemory {
    private static final Unsafe UNSAFE = find();
    private static final long ARRAY = Unsafe.ARRAY_BYTE_BASE_OFFSET;

    private UnsafeMemory() {
    }

    /** Loads a byte. */
    static byte getByte(long address) {
        return UNSAFE.getByte(address);
    }

    /** Stores a byte. */
    static void putByte(long address, byte value) {
        UNSAFE.putByte(address, value);
    }

    /** Loads a short. */
    static short getShort(long address) {
        return UNSAFE.getShort(address);
    }

    /** Stores a short. */
    static void putShort(long address, short value) {
        UNSAFE.putShort(address, value);
    }

    /** Loads a char. */
    static char getChar(long address) {
        return UNSAFE.getChar(address);
    }

    /** Stores a char. */
    static void putChar(long address, char value) {
        UNSAFE.putChar(address, value);
    }

    /** Loads an int. */
    static int getInt(long address) {
        return UNSAFE.getInt(address);
    }

    /** Stores an int. */
    static void putInt(long address, int value) {
        UNSAFE.putInt(address, value);
    }

    /** Loads a long. */
    static long getLong(long address) {
        return UNSAFE.getLong(address);
    }

    /** Stores a long. */
    static void putLong(long address, long value) {
        UNSAFE.putLong(address, value);
    }

    /** Loads a float. */
    static float getFloat(long address) {
        return UNSAFE.getFloat(address);
    }

    /** Stores a float. */
    static void putFloat(long address, float value) {
        UNSAFE.putFloat(address, value);
    }

    /** Loads a double. */
    static double getDouble(long address) {
        return UNSAFE.getDouble(address);
    }

    /** Stores a double. */
    static void putDouble(long address, double value) {
        UNSAFE.putDouble(address, value);
    }

    /** Loads an int; later loads and stores stay later. */
    static int getIntAcquire(long address) {
        int value = UNSAFE.getInt(null, address);
        UNSAFE.loadFence();
        return value;
    }

    /** Stores an int; earlier loads and stores stay earlier. */
    static void putIntRelease(long address, int value) {
        UNSAFE.putOrderedInt(null, address, value);
    }

    /** Loads an int in one order with all other volatile accesses. */
    static int getIntVolatile(long address) {
        return UNSAFE.getIntVolatile(null, address);
    }

    /** Stores an int in one order with all other volatile accesses. */
    static void putIntVolatile(long address, int value) {
        UNSAFE.putIntVolatile(null, address, value);
    }

    /** Stores {@code value} if {@code expected} is there. */
    static boolean compareAndSetInt(long address, int expected, int value) {
        return UNSAFE.compareAndSwapInt(null, address, expected, value);
    }

    /** Adds, and gives what was there. */
    static int getAndAddInt(long address, int delta) {
        return UNSAFE.getAndAddInt(null, address, delta);
    }

    /** Loads a long; later loads and stores stay later. */
    static long getLongAcquire(long address) {
        long value = UNSAFE.getLong(null, address);
        UNSAFE.loadFence();
        return value;
    }

    /** Stores a long; earlier loads and stores stay earlier. */
    static void putLongRelease(long address, long value) {
        UNSAFE.putOrderedLong(null, address, value);
    }

    /** Loads a long in one order with all other volatile accesses. */
    static long getLongVolatile(long address) {
        return UNSAFE.getLongVolatile(null, address);
    }

    /** Stores a long in one order with all other volatile accesses. */
    static void putLongVolatile(long address, long value) {
        UNSAFE.putLongVolatile(null, address, value);
    }

    /** Stores {@code value} if {@code expected} is there. */
    static boolean compareAndSetLong(long address, long expected, long value) {
        return UNSAFE.compareAndSwapLong(null, address, expected, value);
    }

    /** Adds, and gives what was there. */
    static long getAndAddLong(long address, long delta) {
        return UNSAFE.getAndAddLong(null, address, delta);
    }

    /** Copies between addresses; the ranges may overlap. */
    static void copy(long from, long to, long bytes) {
        UNSAFE.copyMemory(from, to, bytes);
    }

    /** Copies to an array. */
    static void copyOut(long from, byte[] to, int index, int bytes) {
        UNSAFE.copyMemory(null, from, to, ARRAY + index, bytes);
    }

    /** Copies from an array. */
    static void copyIn(byte[] from, int index, long to, int bytes) {
        UNSAFE.copyMemory(from, ARRAY + index, null, to, bytes);
    }

    /** Sets every byte. */
    static void fill(long address, long bytes, byte value) {
        UNSAFE.setMemory(address, bytes, value);
    }

    /** A direct buffer, in big-endian order as all new buffers are. */
    static ByteBuffer buffer(long address, int bytes) {
        return Jni.buffer(address, bytes);
    }

    /** What segments and buffers of one owner belong to; nothing without Java 22's memory API. */
    static Object arena() {
        return null;
    }

    /** Makes all segments and buffers of an arena refuse further use, with Java 22's memory API. */
    static void close(Object arena) {
        // Buffers that JNI made cannot be told.
    }

    /** A direct buffer of an arena. */
    static ByteBuffer buffer(long address, int bytes, Object arena) {
        return buffer(address, bytes);
    }

    /** A {@code java.lang.foreign.MemorySegment} of an arena, with Java 22's memory API. */
    static Object segment(long address, long bytes, Object arena) {
        throw new UnsupportedOperationException("memory segments are there from Java 22 on, and not"
                + " with -Dentresol.heap.native=jni; this is Java " + Runtime.version().feature());
    }

    /** The same segment for reading only. */
    static Object readOnly(Object segment) {
        return segment;
    }

    private static Unsafe find() {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (Unsafe) field.get(null);
        } catch (ReflectiveOperationException failure) {
            throw new IllegalStateException("this JVM has no sun.misc.Unsafe; use Java 22 or newer"
                    + " without -Dentresol.heap.native=jni", failure);
        }
    }
}
