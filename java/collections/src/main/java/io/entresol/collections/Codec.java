package io.entresol.collections;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * How objects become bytes. Keys are ordered as their bytes are, unsigned, a key before those it
 * begins: the codecs here keep the order of numbers, and of strings by code points.
 */
public interface Codec<T> {
    /** Strings in UTF-8. */
    Codec<String> STRING = new Codec<>() {
        @Override
        public byte[] encode(String value) {
            return value.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String decode(byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    };

    /** Longs in the order of numbers. */
    Codec<Long> LONG = new Codec<>() {
        @Override
        public byte[] encode(Long value) {
            long ordered = value ^ Long.MIN_VALUE;
            return ByteBuffer.allocate(Long.BYTES).putLong(ordered).array();
        }

        @Override
        public Long decode(byte[] bytes) {
            return ByteBuffer.wrap(bytes).getLong() ^ Long.MIN_VALUE;
        }
    };

    /** Integers in the order of numbers. */
    Codec<Integer> INTEGER = new Codec<>() {
        @Override
        public byte[] encode(Integer value) {
            int ordered = value ^ Integer.MIN_VALUE;
            return ByteBuffer.allocate(Integer.BYTES).putInt(ordered).array();
        }

        @Override
        public Integer decode(byte[] bytes) {
            return ByteBuffer.wrap(bytes).getInt() ^ Integer.MIN_VALUE;
        }
    };

    /** The bytes of {@code value}, which is not null; equal ones have equal bytes. */
    byte[] encode(T value);

    /** The value of those bytes. */
    T decode(byte[] bytes);
}
