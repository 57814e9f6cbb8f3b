package io.entresol.collections;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;
import java.util.function.LongConsumer;

/**
 * How objects become bytes. Keys have the order of their unsigned bytes, a key before longer keys
 * that begin with it. The codecs here keep the order of numbers, of strings by code points, and of
 * UUIDs as texts.
 */
public interface Codec<T> {
    /** Strings in UTF-8; one with half of a surrogate pair is refused. */
    Codec<String> STRING = of("string", Utf8::bytes,
            bytes -> new String(bytes, StandardCharsets.UTF_8));

    /** Bytes as they are. */
    Codec<byte[]> BYTES = of("bytes", byte[]::clone, byte[]::clone);

    /** False before true. */
    Codec<Boolean> BOOLEAN = of("boolean", value -> new byte[] {(byte) (value ? 1 : 0)},
            bytes -> bytes[0] != 0);

    /** Bytes in the order of numbers. */
    Codec<Byte> BYTE = of("byte", value -> new byte[] {(byte) (value ^ Byte.MIN_VALUE)},
            bytes -> (byte) (bytes[0] ^ Byte.MIN_VALUE));

    /** Characters in the order of numbers. */
    Codec<Character> CHARACTER = of("character",
            value -> ByteBuffer.allocate(Character.BYTES).putChar(value).array(),
            bytes -> ByteBuffer.wrap(bytes).getChar());

    /** Shorts in the order of numbers. */
    Codec<Short> SHORT = of("short",
            value -> ByteBuffer.allocate(Short.BYTES).putShort((short) (value ^ Short.MIN_VALUE))
                    .array(),
            bytes -> (short) (ByteBuffer.wrap(bytes).getShort() ^ Short.MIN_VALUE));

    /** Integers in the order of numbers. */
    Codec<Integer> INTEGER = of("integer",
            value -> ByteBuffer.allocate(Integer.BYTES).putInt(value ^ Integer.MIN_VALUE).array(),
            bytes -> ByteBuffer.wrap(bytes).getInt() ^ Integer.MIN_VALUE);

    /** Longs in the order of numbers. */
    Codec<Long> LONG = of("long",
            value -> ByteBuffer.allocate(Long.BYTES).putLong(value ^ Long.MIN_VALUE).array(),
            bytes -> ByteBuffer.wrap(bytes).getLong() ^ Long.MIN_VALUE);

    /** Floats in the order of {@link Float#compare}. */
    Codec<Float> FLOAT = of("float", value -> {
        int bits = Float.floatToIntBits(value);
        int ordered = bits ^ (bits >> 31 | Integer.MIN_VALUE);
        return ByteBuffer.allocate(Float.BYTES).putInt(ordered).array();
    }, bytes -> {
        int ordered = ByteBuffer.wrap(bytes).getInt();
        return Float.intBitsToFloat(ordered ^ (~ordered >> 31 | Integer.MIN_VALUE));
    });

    /** Doubles in the order of {@link Double#compare}. */
    Codec<Double> DOUBLE = of("double", value -> {
        long bits = Double.doubleToLongBits(value);
        long ordered = bits ^ (bits >> 63 | Long.MIN_VALUE);
        return ByteBuffer.allocate(Double.BYTES).putLong(ordered).array();
    }, bytes -> {
        long ordered = ByteBuffer.wrap(bytes).getLong();
        return Double.longBitsToDouble(ordered ^ (~ordered >> 63 | Long.MIN_VALUE));
    });

    /** UUIDs in the order of their texts. */
    Codec<java.util.UUID> UUID = of("uuid",
            value -> ByteBuffer.allocate(2 * Long.BYTES).putLong(value.getMostSignificantBits())
                    .putLong(value.getLeastSignificantBits()).array(),
            bytes -> new java.util.UUID(ByteBuffer.wrap(bytes).getLong(0),
                    ByteBuffer.wrap(bytes).getLong(Long.BYTES)));

    /** A codec of two functions; {@code name} is what heaps know it by. */
    static <T> Codec<T> of(String name, Function<T, byte[]> encode, Function<byte[], T> decode) {
        return new Codec<>() {
            @Override
            public byte[] encode(T value) {
                return encode.apply(value);
            }

            @Override
            public T decode(byte[] bytes) {
                return decode.apply(bytes);
            }

            @Override
            public String name() {
                return name;
            }
        };
    }

    /** The bytes of {@code value}, which is not null unless that is taken; equal for equal ones. */
    byte[] encode(T value);

    /** The value of those bytes. */
    T decode(byte[] bytes);

    /** What heaps know the codec by: collections made with another one are refused. */
    String name();

    /** Whether null is a value like others. */
    default boolean takesNull() {
        return false;
    }

    /**
     * The heap whose objects the bytes of values refer to; null if they refer to none. A codec that
     * passes values to one of a heap says which: collections in another heap refuse it.
     */
    default ObjectHeap heap() {
        return null;
    }

    /** Gives the handles of persistent objects that the bytes of a value refer to. */
    default void references(byte[] bytes, LongConsumer handles) {
    }
}
