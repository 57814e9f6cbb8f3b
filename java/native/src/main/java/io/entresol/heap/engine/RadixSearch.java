package io.entresol.heap.engine;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Searches of radix trees in a heap's memory, without a native call. The layout is that of
 * {@code docs/internals/heap-collections.md}. Nothing outside the heap is read, whatever its bytes
 * say: memory may change and be used for something else under a search, so that what is found counts
 * only if the tree's version, which is even, is the same before and after.
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
    private static final long POSITION_FAR = 0xffff;

    private static final int LEAF = 1;
    private static final int NODE_4 = 2;
    private static final int NODE_16 = 3;
    private static final int NODE_48 = 4;
    private static final int NODE_256 = 5;

    private static final int END = 8;
    private static final int PLACE = 16;
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
    private static final long LINE_BYTES = 64;

    private RadixSearch() {
    }

    /**
     * The address of the value of {@code key}, {@link #ABSENT} or {@link #UNCLEAR}. The root's link
     * is at address {@code root}; blocks lie between {@code first} and {@code end}, offsets from
     * {@code base}.
     */
    public static long find(long base, long first, long end, long root, byte[] key) {
        long link = Memory.getLong(root);
        long above = -1;
        while (link != 0) {
            long handle = link & HANDLE;
            int shape = (int) link & 7;
            if (handle < first || handle > end - bytes(shape)) {
                return UNCLEAR;
            }
            long at = base + handle;
            if (shape == LEAF) {
                return leaf(at, end - handle, key);
            }
            long position = link >>> POSITION_SHIFT;
            if (position == POSITION_FAR) {
                position = Memory.getInt(at + PLACE) & 0xffff_ffffL;
            }
            if (position <= above) {
                return UNCLEAR;
            }
            above = position;
            if (position < key.length) {
                link = child(at, shape, key[(int) position]);
            } else if (position == key.length) {
                link = Memory.getLong(at + END);
            } else {
                return ABSENT;
            }
        }
        return ABSENT;
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
                if (touch(at + LINKS_48, at + NODE_48_BYTES)) {
                    return 0;
                }
                int slot = Memory.getByte(at + BYTES + (key & 0xff)) & 0xff;
                return slot == 0 || slot > 48
                        ? 0 : Memory.getLong(at + LINKS_48 + WORD_BYTES * (slot - 1));
            case NODE_16:
                if (touch(at + LINKS_16, at + NODE_16_BYTES)) {
                    return 0;
                }
                long low = Memory.getLong(at + BYTES);
                long high = Memory.getLong(at + BYTES + WORD_BYTES);
                long link = linked(at + LINKS_16, equalBytes(low, key));
                return link != 0
                        ? link : linked(at + LINKS_16 + 8 * WORD_BYTES, equalBytes(high, key));
            default:
                long bytes = Memory.getLong(at + BYTES);
                return linked(at + LINKS_4, equalBytes(bytes, key) & 0x8080_8080L);
        }
    }

    /**
     * Loads a word of each line, all at once: which of them is needed takes another line to find
     * out. Never true, as all of them would be links of no known shape.
     */
    private static boolean touch(long from, long to) {
        long all = Memory.getLong(to - WORD_BYTES);
        for (long at = from; at < to; at += LINE_BYTES) {
            all |= Memory.getLong(at);
        }
        return all == -1;
    }

    /** The first link that is not empty among those whose byte's highest bit is set. */
    private static long linked(long links, long found) {
        for (long left = found; left != 0; left &= left - 1) {
            long link = Memory.getLong(links + (Long.numberOfTrailingZeros(left) & ~7));
            if (link != 0) {
                return link;
            }
        }
        return 0;
    }

    /** The highest bit of each byte of {@code word} that equals {@code value}, exactly. */
    private static long equalBytes(long word, byte value) {
        long low = 0x7f7f_7f7f_7f7f_7f7fL;
        long difference = word ^ (0x0101_0101_0101_0101L * (value & 0xff));
        return ~(((difference & low) + low) | difference | low);
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
