package io.entresol.collections.internal.blocks;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * A hash of bytes that lies in heaps and therefore never changes: multiply and mix eight bytes at a
 * time, with the finisher of SplitMix64 (G. Steele and others, "Fast splittable pseudorandom number
 * generators", 2014).
 */
final class Hash {
    private static final VarHandle LONGS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long STEP = 0x9E3779B97F4A7C15L;

    private Hash() {
    }

    static long of(byte[] bytes, long seed) {
        long hash = mixed(seed + STEP * (bytes.length + 1));
        int at = 0;
        for (; at <= bytes.length - Long.BYTES; at += Long.BYTES) {
            hash = mixed((hash ^ (long) LONGS.get(bytes, at)) + STEP);
        }
        long rest = 0;
        for (int index = bytes.length - 1; index >= at; index--) {
            rest = rest << 8 | bytes[index] & 0xff;
        }
        return mixed((hash ^ rest) + STEP);
    }

    private static long mixed(long value) {
        long mixed = (value ^ value >>> 30) * 0xBF58476D1CE4E5B9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94D049BB133111EBL;
        return mixed ^ mixed >>> 31;
    }
}
