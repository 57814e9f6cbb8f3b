package io.entresol.collections;

import io.entresol.heap.MemoryAccessor;

/** Numbers of one, two, four or eight bytes, in the machine's order or in the other one. */
final class Numbers {
    private Numbers() {
    }

    /** A number; what is beyond its bytes means nothing. */
    static long load(MemoryAccessor block, long at, int bytes, boolean swapped) {
        switch (bytes) {
            case Byte.BYTES:
                return block.getByte(at);
            case Short.BYTES:
                short two = block.getShort(at);
                return swapped ? Short.reverseBytes(two) : two;
            case Integer.BYTES:
                int four = block.getInt(at);
                return swapped ? Integer.reverseBytes(four) : four;
            default:
                long eight = block.getLong(at);
                return swapped ? Long.reverseBytes(eight) : eight;
        }
    }

    /** Stores the lower bytes of {@code value}. */
    static void store(MemoryAccessor block, long at, int bytes, boolean swapped, long value) {
        switch (bytes) {
            case Byte.BYTES:
                block.setByte(at, (byte) value);
                break;
            case Short.BYTES:
                short two = (short) value;
                block.setShort(at, swapped ? Short.reverseBytes(two) : two);
                break;
            case Integer.BYTES:
                int four = (int) value;
                block.setInt(at, swapped ? Integer.reverseBytes(four) : four);
                break;
            default:
                block.setLong(at, swapped ? Long.reverseBytes(value) : value);
        }
    }
}
