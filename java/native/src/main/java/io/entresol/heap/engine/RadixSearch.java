package io.entresol.heap.engine;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Searches of radix trees in a heap's memory, without a native call. The layout is that of {@code
 * docs/internals/heap-collections.md}. A search reads nothing outside the heap, whatever the heap's
 * bytes say. Memory may change and be reused during a search, so a result counts only if the tree's
 * version is even, and the same before and after.
 */
public final class RadixSearch {
    /** The key is not there. */
    public static final long ABSENT = 0;
    /** Something is damaged, changing or beyond the end that was given. */
    public static final long UNCLEAR = -1;

    private static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private static final long HANDLE = 0x0000_ffff_ffff_fff8L;
    private static final int POSITION_SHIFT = 48;
    /** From here on positions are not in links; keys so long are left to the native library. */
    private static final int POSITION_FAR = 0xffff;

    private static final int LEAF = 1;
    private static final int NODE_4 = 2;
    private static final int NODE_16 = 3;
    private static final int NODE_48 = 4;
    private static final int NODE_256 = 5;

    private static final int END = 8;
    private static final int BYTES = 24;
    private static final int LINKS_4 = 32;
    private static final int LINKS_16 = 40;
    private static final int LINKS_48 = 280;
    private static final int NODE_4_BYTES = 64;
    private static final int NODE_16_BYTES = 168;
    private static final int NODE_48_BYTES = 664;
    private static final int NODE_256_BYTES = 2072;
    private static final int LEAF_HEAD_BYTES = 16;
    private static final long WORD_BYTES = 8;
    /** One in each byte. */
    private static final long EACH = 0x0101_0101_0101_0101L;

    private RadixSearch() {
    }

    /**
     * The address of the value of {@code key}, {@link #ABSENT} or {@link #UNCLEAR}. The root's link
     * is at address {@code root}; blocks lie between {@code first} and {@code end}, offsets from
     * {@code base}.
     *
     * <p>Most of the time of a large map's searches is waiting for memory. The fewer instructions a
     * search has, the more of the next ones a processor begins meanwhile: hence one comparison for
     * both ends of the heap, and no loops and few branches below.
     */
    public static long find(long base, long first, long end, long root, byte[] key) {
        long room = end - first;
        long roomOfAny = room - NODE_256_BYTES;
        if (roomOfAny < 0 || key.length >= POSITION_FAR) {
            return UNCLEAR;
        }
        long lowest = base + first;
        // A comparison without a sign: an offset below the lowest is far above all others.
        long highest = roomOfAny + Long.MIN_VALUE;
        int above = -1;
        long link = Memory.getLong(root);
        while (true) {
            long offset = (link & HANDLE) - first;
            int shape = (int) link & 7;
            if (offset + Long.MIN_VALUE > highest) {
                if (link == 0) {
                    return ABSENT;
                }
                if (offset < 0 || offset > room - bytes(shape)) {
                    return UNCLEAR;
                }
            }
            long at = lowest + offset;
            if (shape == LEAF) {
                return leaf(at, room - offset, key);
            }
            int position = (int) (link >>> POSITION_SHIFT);
            if (position <= above) {
                return UNCLEAR;
            }
            above = position;
            if (position < key.length) {
                link = child(at, shape, key[position]);
            } else if (position == key.length) {
                link = Memory.getLong(at + END);
            } else {
                return ABSENT;
            }
        }
    }

    private static long bytes(int shape) {
        switch (shape) {
            case LEAF:
                return LEAF_HEAD_BYTES;
            case NODE_4:
                return NODE_4_BYTES;
            case NODE_16:
                return NODE_16_BYTES;
            case NODE_48:
                return NODE_48_BYTES;
            case NODE_256:
                return NODE_256_BYTES;
            default:
                return Long.MAX_VALUE;
        }
    }

    private static long child(long at, int shape, byte key) {
        switch (shape) {
            case NODE_256:
                return Memory.getLong(at + BYTES + WORD_BYTES * (key & 0xff));
            case NODE_48:
                int slot = Memory.getByte(at + BYTES + (key & 0xff)) & 0xff;
                return slot == 0 || slot > 48
                        ? 0 : Memory.getLong(at + LINKS_48 + WORD_BYTES * (slot - 1));
            case NODE_16:
                return among16(at, key);
            case NODE_4:
                long found = firstEqual(Memory.getLong(at + BYTES), key) & 0xffff_ffffL;
                return found == 0 ? 0 : Memory.getLong(
                        at + LINKS_4 + (Long.numberOfTrailingZeros(found) & ~7));
            default:
                // A link of no known shape.
                return UNCLEAR;
        }
    }

    /**
     * Which of the two words has the byte is left to arithmetic: a processor that guessed wrong
     * would begin the next search only once this node is there.
     */
    private static long among16(long at, byte key) {
        long low = firstEqual(Memory.getLong(at + BYTES), key);
        long high = firstEqual(Memory.getLong(at + BYTES + WORD_BYTES), key);
        int inLow = Long.numberOfTrailingZeros(low) >>> 3;
        int inHigh = Long.numberOfTrailingZeros(high) >>> 3;
        // A word without the byte counts 8.
        int index = inLow + (inHigh & -(inLow >>> 3));
        return index == 16 ? 0 : Memory.getLong(at + LINKS_16 + WORD_BYTES * index);
    }

    /**
     * The highest bit of the first byte of {@code word} that equals {@code value}, and bits above
     * it; 0 if there is none. If a node has a link for the byte, it is at the first place with it.
     */
    private static long firstEqual(long word, byte value) {
        long difference = word ^ (EACH * (value & 0xff));
        return (difference - EACH) & ~difference & (EACH << 7);
    }

    private static long leaf(long at, long room, byte[] key) {
        long lengths = Memory.getLong(at);
        if (lengths != (WORD_BYTES << 32 | key.length)) {
            return lengths >>> 32 == WORD_BYTES ? ABSENT : UNCLEAR;
        }
        if (key.length > room - LEAF_HEAD_BYTES) {
            return UNCLEAR;
        }
        long from = at + LEAF_HEAD_BYTES;
        int index = 0;
        for (; index <= key.length - WORD_BYTES; index += WORD_BYTES) {
            if ((long) WORD.get(key, index) != Memory.getLong(from + index)) {
                return ABSENT;
            }
        }
        for (; index < key.length; index++) {
            if (key[index] != Memory.getByte(from + index)) {
                return ABSENT;
            }
        }
        return at + WORD_BYTES;
    }
}
