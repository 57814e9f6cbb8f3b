package io.entresol.heap.engine;

import java.nio.ByteBuffer;
import java.lang.reflect.Field;
import sun.misc.Unsafe;

/**
 * The implementation of {@link Memory} before Java 22. Nothing is checked here: callers have proved
 * that the addresses are theirs. The ordered and atomic forms need a multiple of their size.
 */
final class UnsafeMemory {
    private static final Unsafe UNSAFE = find();
    private static final long ARRAY = Unsafe.ARRAY_BYTE_BASE_OFFSET;

    private UnsafeMemory() {
    }

    static byte getByte(long address) {
        return UNSAFE.getByte(address);
    }

    static void putByte(long address, byte value) {
        UNSAFE.putByte(address, value);
    }

    static short getShort(long address) {
        return UNSAFE.getShort(address);
    }

    static void putShort(long address, short value) {
        UNSAFE.putShort(address, value);
    }

    static char getChar(long address) {
        return UNSAFE.getChar(address);
    }

    static void putChar(long address, char value) {
        UNSAFE.putChar(address, value);
    }

    static int getInt(long address) {
        return UNSAFE.getInt(address);
    }

    static void putInt(long address, int value) {
        UNSAFE.putInt(address, value);
    }

    static long getLong(long address) {
        return UNSAFE.getLong(address);
    }

    static void putLong(long address, long value) {
        UNSAFE.putLong(address, value);
    }

    static float getFloat(long address) {
        return UNSAFE.getFloat(address);
    }

    static void putFloat(long address, float value) {
        UNSAFE.putFloat(address, value);
    }

    static double getDouble(long address) {
        return UNSAFE.getDouble(address);
    }

    static void putDouble(long address, double value) {
        UNSAFE.putDouble(address, value);
    }

    static int getIntAcquire(long address) {
        int value = UNSAFE.getInt(null, address);
        UNSAFE.loadFence();
        return value;
    }

    static void putIntRelease(long address, int value) {
        UNSAFE.putOrderedInt(null, address, value);
    }

    static int getIntVolatile(long address) {
        return UNSAFE.getIntVolatile(null, address);
    }

    static void putIntVolatile(long address, int value) {
        UNSAFE.putIntVolatile(null, address, value);
    }

    static boolean compareAndSetInt(long address, int expected, int value) {
        return UNSAFE.compareAndSwapInt(null, address, expected, value);
    }

    static int getAndAddInt(long address, int delta) {
        return UNSAFE.getAndAddInt(null, address, delta);
    }

    static long getLongAcquire(long address) {
        long value = UNSAFE.getLong(null, address);
        UNSAFE.loadFence();
        return value;
    }

    static void putLongRelease(long address, long value) {
        UNSAFE.putOrderedLong(null, address, value);
    }

    static long getLongVolatile(long address) {
        return UNSAFE.getLongVolatile(null, address);
    }

    static void putLongVolatile(long address, long value) {
        UNSAFE.putLongVolatile(null, address, value);
    }

    static boolean compareAndSetLong(long address, long expected, long value) {
        return UNSAFE.compareAndSwapLong(null, address, expected, value);
    }

    static long getAndAddLong(long address, long delta) {
        return UNSAFE.getAndAddLong(null, address, delta);
    }

    static void copy(long from, long to, long bytes) {
        UNSAFE.copyMemory(from, to, bytes);
    }

    static void copyOut(long from, byte[] to, int index, int bytes) {
        UNSAFE.copyMemory(null, from, to, ARRAY + index, bytes);
    }

    static void copyIn(byte[] from, int index, long to, int bytes) {
        UNSAFE.copyMemory(from, ARRAY + index, null, to, bytes);
    }

    static void fill(long address, long bytes, byte value) {
        UNSAFE.setMemory(address, bytes, value);
    }

    static ByteBuffer buffer(long address, int bytes) {
        return Jni.buffer(address, bytes);
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
