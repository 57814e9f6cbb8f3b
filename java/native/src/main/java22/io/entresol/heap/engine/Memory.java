package io.entresol.heap.engine;

import java.nio.ByteBuffer;
import java.lang.invoke.VarHandle;

/**
 * Memory by absolute address, in the machine's byte order. Nothing is checked here: callers have
 * proved that the addresses are theirs. The ordered and atomic forms need a multiple of their size.
 */
public final class Memory {
    private static final boolean FFM = "ffm".equals(Native.path());

    private static final VarHandle BYTE = FFM ? Ffm.plain(byte.class) : null;
    private static final VarHandle SHORT = FFM ? Ffm.plain(short.class) : null;
    private static final VarHandle CHAR = FFM ? Ffm.plain(char.class) : null;
    private static final VarHandle INT = FFM ? Ffm.plain(int.class) : null;
    private static final VarHandle LONG = FFM ? Ffm.plain(long.class) : null;
    private static final VarHandle FLOAT = FFM ? Ffm.plain(float.class) : null;
    private static final VarHandle DOUBLE = FFM ? Ffm.plain(double.class) : null;
    private static final VarHandle INT_ATOMIC = FFM ? Ffm.atomic(int.class) : null;
    private static final VarHandle LONG_ATOMIC = FFM ? Ffm.atomic(long.class) : null;

    private Memory() {
    }

    /** Loads a byte. */
    public static byte getByte(long address) {
        if (!FFM) {
            return UnsafeMemory.getByte(address);
        }
        return (byte) BYTE.get(address);
    }

    /** Stores a byte. */
    public static void putByte(long address, byte value) {
        if (FFM) {
            BYTE.set(address, value);
        } else {
            UnsafeMemory.putByte(address, value);
        }
    }

    /** Loads a short. */
    public static short getShort(long address) {
        if (!FFM) {
            return UnsafeMemory.getShort(address);
        }
        return (short) SHORT.get(address);
    }

    /** Stores a short. */
    public static void putShort(long address, short value) {
        if (FFM) {
            SHORT.set(address, value);
        } else {
            UnsafeMemory.putShort(address, value);
        }
    }

    /** Loads a char. */
    public static char getChar(long address) {
        if (!FFM) {
            return UnsafeMemory.getChar(address);
        }
        return (char) CHAR.get(address);
    }

    /** Stores a char. */
    public static void putChar(long address, char value) {
        if (FFM) {
            CHAR.set(address, value);
        } else {
            UnsafeMemory.putChar(address, value);
        }
    }

    /** Loads a int. */
    public static int getInt(long address) {
        if (!FFM) {
            return UnsafeMemory.getInt(address);
        }
        return (int) INT.get(address);
    }

    /** Stores a int. */
    public static void putInt(long address, int value) {
        if (FFM) {
            INT.set(address, value);
        } else {
            UnsafeMemory.putInt(address, value);
        }
    }

    /** Loads a long. */
    public static long getLong(long address) {
        if (!FFM) {
            return UnsafeMemory.getLong(address);
        }
        return (long) LONG.get(address);
    }

    /** Stores a long. */
    public static void putLong(long address, long value) {
        if (FFM) {
            LONG.set(address, value);
        } else {
            UnsafeMemory.putLong(address, value);
        }
    }

    /** Loads a float. */
    public static float getFloat(long address) {
        if (!FFM) {
            return UnsafeMemory.getFloat(address);
        }
        return (float) FLOAT.get(address);
    }

    /** Stores a float. */
    public static void putFloat(long address, float value) {
        if (FFM) {
            FLOAT.set(address, value);
        } else {
            UnsafeMemory.putFloat(address, value);
        }
    }

    /** Loads a double. */
    public static double getDouble(long address) {
        if (!FFM) {
            return UnsafeMemory.getDouble(address);
        }
        return (double) DOUBLE.get(address);
    }

    /** Stores a double. */
    public static void putDouble(long address, double value) {
        if (FFM) {
            DOUBLE.set(address, value);
        } else {
            UnsafeMemory.putDouble(address, value);
        }
    }

    /** Loads a int; later loads and stores stay later. */
    public static int getIntAcquire(long address) {
        if (!FFM) {
            return UnsafeMemory.getIntAcquire(address);
        }
        return (int) INT_ATOMIC.getAcquire(address);
    }

    /** Stores a int; earlier loads and stores stay earlier. */
    public static void putIntRelease(long address, int value) {
        if (FFM) {
            INT_ATOMIC.setRelease(address, value);
        } else {
            UnsafeMemory.putIntRelease(address, value);
        }
    }

    /** Loads a int in one order with all other volatile accesses. */
    public static int getIntVolatile(long address) {
        if (!FFM) {
            return UnsafeMemory.getIntVolatile(address);
        }
        return (int) INT_ATOMIC.getVolatile(address);
    }

    /** Stores a int in one order with all other volatile accesses. */
    public static void putIntVolatile(long address, int value) {
        if (FFM) {
            INT_ATOMIC.setVolatile(address, value);
        } else {
            UnsafeMemory.putIntVolatile(address, value);
        }
    }

    /** Stores {@code value} if {@code expected} is there. */
    public static boolean compareAndSetInt(long address, int expected, int value) {
        if (!FFM) {
            return UnsafeMemory.compareAndSetInt(address, expected, value);
        }
        return INT_ATOMIC.compareAndSet(address, expected, value);
    }

    /** Adds, and gives what was there. */
    public static int getAndAddInt(long address, int delta) {
        if (!FFM) {
            return UnsafeMemory.getAndAddInt(address, delta);
        }
        return (int) INT_ATOMIC.getAndAdd(address, delta);
    }

    /** Loads a long; later loads and stores stay later. */
    public static long getLongAcquire(long address) {
        if (!FFM) {
            return UnsafeMemory.getLongAcquire(address);
        }
        return (long) LONG_ATOMIC.getAcquire(address);
    }

    /** Stores a long; earlier loads and stores stay earlier. */
    public static void putLongRelease(long address, long value) {
        if (FFM) {
            LONG_ATOMIC.setRelease(address, value);
        } else {
            UnsafeMemory.putLongRelease(address, value);
        }
    }

    /** Loads a long in one order with all other volatile accesses. */
    public static long getLongVolatile(long address) {
        if (!FFM) {
            return UnsafeMemory.getLongVolatile(address);
        }
        return (long) LONG_ATOMIC.getVolatile(address);
    }

    /** Stores a long in one order with all other volatile accesses. */
    public static void putLongVolatile(long address, long value) {
        if (FFM) {
            LONG_ATOMIC.setVolatile(address, value);
        } else {
            UnsafeMemory.putLongVolatile(address, value);
        }
    }

    /** Stores {@code value} if {@code expected} is there. */
    public static boolean compareAndSetLong(long address, long expected, long value) {
        if (!FFM) {
            return UnsafeMemory.compareAndSetLong(address, expected, value);
        }
        return LONG_ATOMIC.compareAndSet(address, expected, value);
    }

    /** Adds, and gives what was there. */
    public static long getAndAddLong(long address, long delta) {
        if (!FFM) {
            return UnsafeMemory.getAndAddLong(address, delta);
        }
        return (long) LONG_ATOMIC.getAndAdd(address, delta);
    }

    /** Copies between addresses; the ranges may overlap. */
    public static void copy(long from, long to, long bytes) {
        if (FFM) {
            Ffm.copy(from, to, bytes);
        } else {
            UnsafeMemory.copy(from, to, bytes);
        }
    }

    /** Copies to an array. */
    public static void copyOut(long from, byte[] to, int index, int bytes) {
        if (FFM) {
            Ffm.copyOut(from, to, index, bytes);
        } else {
            UnsafeMemory.copyOut(from, to, index, bytes);
        }
    }

    /** Copies from an array. */
    public static void copyIn(byte[] from, int index, long to, int bytes) {
        if (FFM) {
            Ffm.copyIn(from, index, to, bytes);
        } else {
            UnsafeMemory.copyIn(from, index, to, bytes);
        }
    }

    /** Sets every byte. */
    public static void fill(long address, long bytes, byte value) {
        if (FFM) {
            Ffm.fill(address, bytes, value);
        } else {
            UnsafeMemory.fill(address, bytes, value);
        }
    }

    /** A direct buffer, in big-endian order as all new buffers are. */
    public static ByteBuffer buffer(long address, int bytes) {
        if (!FFM) {
            return UnsafeMemory.buffer(address, bytes);
        }
        return Ffm.buffer(address, bytes);
    }

    /** What segments and buffers of one owner belong to. */
    public static Object arena() {
        return FFM ? Ffm.arena() : null;
    }

    /** Makes all segments and buffers of an arena refuse further use. */
    public static void close(Object arena) {
        if (FFM) {
            Ffm.close(arena);
        }
    }

    /** A direct buffer of an arena. */
    public static ByteBuffer buffer(long address, int bytes, Object arena) {
        return FFM ? Ffm.buffer(address, bytes, arena) : UnsafeMemory.buffer(address, bytes);
    }

    /** A {@code java.lang.foreign.MemorySegment} of an arena. */
    public static Object segment(long address, long bytes, Object arena) {
        if (!FFM) {
            throw new UnsupportedOperationException("memory segments are not there by jni; start"
                    + " without -Dentresol.heap.native=jni");
        }
        return Ffm.segment(address, bytes, arena);
    }

    /** The same segment for reading only. */
    public static Object readOnly(Object segment) {
        return Ffm.readOnly(segment);
    }
}
