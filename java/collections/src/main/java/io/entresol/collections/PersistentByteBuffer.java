package io.entresol.collections;

import java.nio.BufferOverflowException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.InvalidMarkException;
import java.nio.ReadOnlyBufferException;
import java.util.Objects;
import java.util.function.Supplier;

/**
 * A buffer like {@link ByteBuffer} on a {@link PersistentByteArray}, which keeps position, limit,
 * mark and order with the bytes. Buffers of one array see each other's changes. Methods act and
 * throw as those of {@link ByteBuffer}; each is a transaction or part of the thread's current one.
 * A buffer belongs to one thread at a time, as in Java.
 */
public final class PersistentByteBuffer extends PersistentObject
        implements Comparable<PersistentByteBuffer> {
    /** What heaps know of the class. */
    static final ObjectType<PersistentByteBuffer> TYPE = ObjectType.of(PersistentByteBuffer.class,
            "array object, offset int, capacity int, limit int, position int, mark int, form int",
            PersistentByteBuffer::new);

    private static final long ARRAY_AT = HEADER_BYTES;
    private static final long OFFSET_AT = ARRAY_AT + Long.BYTES;
    private static final long CAPACITY_AT = OFFSET_AT + Integer.BYTES;
    private static final long LIMIT_AT = CAPACITY_AT + Integer.BYTES;
    private static final long POSITION_AT = LIMIT_AT + Integer.BYTES;
    private static final long MARK_AT = POSITION_AT + Integer.BYTES;
    private static final long FORM_AT = MARK_AT + Integer.BYTES;
    private static final long BYTES = FORM_AT + Integer.BYTES;

    private static final int NO_MARK = -1;
    /** Bits of the form. */
    private static final int LITTLE_ENDIAN = 1;
    private static final int READ_ONLY = 2;

    /** Never another one; asked for once. */
    private volatile PersistentByteArray array;

    private PersistentByteBuffer(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes one of so many bytes, all zero. */
    public static PersistentByteBuffer allocate(ObjectHeap objects, int capacity) {
        if (capacity < 0) {
            throw new IllegalArgumentException("capacity < 0: " + capacity);
        }
        return objects.run(() -> wrap(PersistentByteArray.create(objects, capacity)));
    }

    /** Makes one on a copy of those bytes. */
    public static PersistentByteBuffer copyWrap(ObjectHeap objects, byte[] bytes) {
        return objects.run(() -> wrap(PersistentByteArray.of(objects, bytes)));
    }

    /** Makes one on an array. */
    public static PersistentByteBuffer wrap(PersistentByteArray array) {
        return wrap(array, 0, array.length());
    }

    /** Makes one on an array, whose position and limit are those of a part. */
    public static PersistentByteBuffer wrap(PersistentByteArray array, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, array.length());
        return make(array, new int[] {0, array.length(), offset + length, offset, NO_MARK, 0});
    }

    /** Whether the array may be asked for: not if the buffer is for reading only. */
    public boolean hasArray() {
        return !isReadOnly();
    }

    /** The array that the bytes are in. */
    public PersistentByteArray array() {
        requireWritable();
        return bytes();
    }

    /** The buffer's first byte in the array. */
    public int arrayOffset() {
        requireWritable();
        return word(OFFSET_AT);
    }

    /** Bytes of the buffer. */
    public int capacity() {
        return word(CAPACITY_AT);
    }

    /** Where the next byte is read or written. */
    public int position() {
        return word(POSITION_AT);
    }

    /** Where reading and writing end. */
    public int limit() {
        return word(LIMIT_AT);
    }

    /** Bytes between position and limit. */
    public int remaining() {
        return Math.max(0, limit() - position());
    }

    /** Whether there are bytes between position and limit. */
    public boolean hasRemaining() {
        return position() < limit();
    }

    /** Whether the buffer changes no byte. */
    public boolean isReadOnly() {
        return (word(FORM_AT) & READ_ONLY) != 0;
    }

    /** How numbers are read and written; big endian unless changed. */
    public ByteOrder order() {
        return (word(FORM_AT) & LITTLE_ENDIAN) != 0
                ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
    }

    /** Changes how numbers are read and written. */
    public PersistentByteBuffer order(ByteOrder order) {
        int form = word(FORM_AT) & ~LITTLE_ENDIAN;
        block().setInt(FORM_AT, order == ByteOrder.LITTLE_ENDIAN ? form | LITTLE_ENDIAN : form);
        return this;
    }

    /** Changes the position; a mark behind it is gone. */
    public PersistentByteBuffer position(int position) {
        if (position < 0 || position > limit()) {
            throw new IllegalArgumentException(
                    "position " + position + " is outside 0 to the limit, " + limit());
        }
        return place(limit(), position, kept(position));
    }

    /** Changes the limit; a position behind it becomes it, a mark behind it is gone. */
    public PersistentByteBuffer limit(int limit) {
        if (limit < 0 || limit > capacity()) {
            throw new IllegalArgumentException(
                    "limit " + limit + " is outside 0 to the capacity, " + capacity());
        }
        return place(limit, Math.min(position(), limit), kept(limit));
    }

    /** Marks the position. */
    public PersistentByteBuffer mark() {
        return place(limit(), position(), position());
    }

    /** Goes to the mark. */
    public PersistentByteBuffer reset() {
        int mark = word(MARK_AT);
        if (mark == NO_MARK) {
            throw new InvalidMarkException();
        }
        return place(limit(), mark, mark);
    }

    /** Ready for writing all: position 0, the limit at the end, no mark. */
    public PersistentByteBuffer clear() {
        return place(capacity(), 0, NO_MARK);
    }

    /** Ready for reading what was written: the limit at the position, position 0, no mark. */
    public PersistentByteBuffer flip() {
        return place(position(), 0, NO_MARK);
    }

    /** Ready for reading again: position 0, no mark. */
    public PersistentByteBuffer rewind() {
        return place(limit(), 0, NO_MARK);
    }

    /** A buffer of the bytes between position and limit, big endian. */
    public PersistentByteBuffer slice() {
        return slice(position(), remaining());
    }

    /** A buffer of so many bytes from {@code index} on, big endian. */
    public PersistentByteBuffer slice(int index, int length) {
        Objects.checkFromIndexSize(index, length, limit());
        return view(new int[] {
            word(OFFSET_AT) + index, length, length, 0, NO_MARK, word(FORM_AT) & READ_ONLY});
    }

    /** A buffer of the same bytes with the same position, limit and mark, big endian. */
    public PersistentByteBuffer duplicate() {
        return duplicate(word(FORM_AT) & READ_ONLY);
    }

    /** As {@link #duplicate}, for reading only. */
    public PersistentByteBuffer asReadOnlyBuffer() {
        return duplicate(READ_ONLY);
    }

    /** Moves the bytes that remain to the front, and is ready for writing behind them. */
    public PersistentByteBuffer compact() {
        requireWritable();
        objects().run(() -> {
            int count = remaining();
            if (count > 0) {
                bytes().block().copyFrom(bytes().block(), at(position()), at(0), count);
            }
            place(capacity(), count, NO_MARK);
        });
        return this;
    }

    /** The next byte. */
    public byte get() {
        return (byte) next(Byte.BYTES);
    }

    /** The byte at {@code index}. */
    public byte get(int index) {
        return (byte) load(index, Byte.BYTES);
    }

    /** The next bytes, as many as the array has. */
    public PersistentByteBuffer get(byte[] to) {
        return get(to, 0, to.length);
    }

    /** The next bytes, into a part of an array. */
    public PersistentByteBuffer get(byte[] to, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, to.length);
        objects().run(() -> {
            requireMore(length);
            get(position(), to, offset, length);
            skip(length);
        });
        return this;
    }

    /** The bytes from {@code index} on, as many as the array has. */
    public PersistentByteBuffer get(int index, byte[] to) {
        return get(index, to, 0, to.length);
    }

    /** The bytes from {@code index} on, into a part of an array. */
    public PersistentByteBuffer get(int index, byte[] to, int offset, int length) {
        Objects.checkFromIndexSize(index, length, limit());
        Objects.checkFromIndexSize(offset, length, to.length);
        if (length > 0) {
            bytes().block().copyToArray(at(index), to, offset, length);
        }
        return this;
    }

    /** Writes the next byte. */
    public PersistentByteBuffer put(byte value) {
        return append(Byte.BYTES, value);
    }

    /** Changes the byte at {@code index}. */
    public PersistentByteBuffer put(int index, byte value) {
        return store(index, Byte.BYTES, value);
    }

    /** Writes the next bytes. */
    public PersistentByteBuffer put(byte[] from) {
        return put(from, 0, from.length);
    }

    /** Writes the next bytes, from a part of an array. */
    public PersistentByteBuffer put(byte[] from, int offset, int length) {
        requireWritable();
        Objects.checkFromIndexSize(offset, length, from.length);
        objects().run(() -> {
            requireRoom(length);
            put(position(), from, offset, length);
            skip(length);
        });
        return this;
    }

    /** Changes the bytes from {@code index} on. */
    public PersistentByteBuffer put(int index, byte[] from) {
        return put(index, from, 0, from.length);
    }

    /** Changes the bytes from {@code index} on, from a part of an array. */
    public PersistentByteBuffer put(int index, byte[] from, int offset, int length) {
        requireWritable();
        Objects.checkFromIndexSize(index, length, limit());
        Objects.checkFromIndexSize(offset, length, from.length);
        if (length > 0) {
            bytes().block().copyFromArray(from, offset, at(index), length);
        }
        return this;
    }

    /** Writes what remains in a buffer of Java. */
    public PersistentByteBuffer put(ByteBuffer from) {
        requireWritable();
        objects().run(() -> {
            requireRoom(from.remaining());
            if (from.hasRemaining()) {
                bytes().block().copyFromByteBuffer(from, at(position()));
            }
            skip(from.remaining());
        });
        from.position(from.limit());
        return this;
    }

    /** Writes what remains in another buffer of the heap. */
    public PersistentByteBuffer put(PersistentByteBuffer from) {
        if (from == this) {
            throw new IllegalArgumentException("a buffer cannot be written to itself");
        }
        requireWritable();
        if (from.objects() != objects()) {
            throw new IllegalArgumentException("the buffers are in different heaps");
        }
        objects().run(() -> {
            int count = from.remaining();
            requireRoom(count);
            if (count > 0) {
                bytes().block().copyFrom(
                        from.bytes().block(), from.at(from.position()), at(position()), count);
            }
            skip(count);
            from.skip(count);
        });
        return this;
    }

    /** The next two bytes as a short. */
    public short getShort() {
        return (short) next(Short.BYTES);
    }

    /** Two bytes as a short. */
    public short getShort(int index) {
        return (short) load(index, Short.BYTES);
    }

    /** Writes a short as the next two bytes. */
    public PersistentByteBuffer putShort(short value) {
        return append(Short.BYTES, value);
    }

    /** Changes two bytes to a short. */
    public PersistentByteBuffer putShort(int index, short value) {
        return store(index, Short.BYTES, value);
    }

    /** The next two bytes as a char. */
    public char getChar() {
        return (char) next(Character.BYTES);
    }

    /** Two bytes as a char. */
    public char getChar(int index) {
        return (char) load(index, Character.BYTES);
    }

    /** Writes a char as the next two bytes. */
    public PersistentByteBuffer putChar(char value) {
        return append(Character.BYTES, value);
    }

    /** Changes two bytes to a char. */
    public PersistentByteBuffer putChar(int index, char value) {
        return store(index, Character.BYTES, value);
    }

    /** The next four bytes as an int. */
    public int getInt() {
        return (int) next(Integer.BYTES);
    }

    /** Four bytes as an int. */
    public int getInt(int index) {
        return (int) load(index, Integer.BYTES);
    }

    /** Writes an int as the next four bytes. */
    public PersistentByteBuffer putInt(int value) {
        return append(Integer.BYTES, value);
    }

    /** Changes four bytes to an int. */
    public PersistentByteBuffer putInt(int index, int value) {
        return store(index, Integer.BYTES, value);
    }

    /** The next eight bytes as a long. */
    public long getLong() {
        return next(Long.BYTES);
    }

    /** Eight bytes as a long. */
    public long getLong(int index) {
        return load(index, Long.BYTES);
    }

    /** Writes a long as the next eight bytes. */
    public PersistentByteBuffer putLong(long value) {
        return append(Long.BYTES, value);
    }

    /** Changes eight bytes to a long. */
    public PersistentByteBuffer putLong(int index, long value) {
        return store(index, Long.BYTES, value);
    }

    /** The next four bytes as a float. */
    public float getFloat() {
        return Float.intBitsToFloat(getInt());
    }

    /** Four bytes as a float. */
    public float getFloat(int index) {
        return Float.intBitsToFloat(getInt(index));
    }

    /** Writes a float as the next four bytes. */
    public PersistentByteBuffer putFloat(float value) {
        return putInt(Float.floatToRawIntBits(value));
    }

    /** Changes four bytes to a float. */
    public PersistentByteBuffer putFloat(int index, float value) {
        return putInt(index, Float.floatToRawIntBits(value));
    }

    /** The next eight bytes as a double. */
    public double getDouble() {
        return Double.longBitsToDouble(getLong());
    }

    /** Eight bytes as a double. */
    public double getDouble(int index) {
        return Double.longBitsToDouble(getLong(index));
    }

    /** Writes a double as the next eight bytes. */
    public PersistentByteBuffer putDouble(double value) {
        return putLong(Double.doubleToRawLongBits(value));
    }

    /** Changes eight bytes to a double. */
    public PersistentByteBuffer putDouble(int index, double value) {
        return putLong(index, Double.doubleToRawLongBits(value));
    }

    /** Compares what remains, as signed bytes. */
    @Override
    public int compareTo(PersistentByteBuffer other) {
        return copy().compareTo(other.copy());
    }

    /** Whether what remains is the same. */
    @Override
    public boolean equals(Object other) {
        return other == this || other instanceof PersistentByteBuffer
                && copy().equals(((PersistentByteBuffer) other).copy());
    }

    /** Of what remains. */
    @Override
    public int hashCode() {
        return copy().hashCode();
    }

    @Override
    public String toString() {
        return getClass().getName() + "[pos=" + position() + " lim=" + limit() + " cap="
                + capacity() + "]";
    }

    @Override
    protected void trace(Tracer tracer) {
        tracer.object(block().getLong(ARRAY_AT));
    }

    private static PersistentByteBuffer make(PersistentByteArray array, int[] words) {
        PersistentByteBuffer made = TYPE.create(array.objects(), BYTES, range -> {
            range.setLong(ARRAY_AT, array.handle());
            for (int index = 0; index < words.length; index++) {
                range.setInt(OFFSET_AT + (long) index * Integer.BYTES, words[index]);
            }
        });
        made.array = array;
        return made;
    }

    private PersistentByteBuffer view(int[] words) {
        return make(bytes(), words);
    }

    private PersistentByteBuffer duplicate(int form) {
        return view(new int[] {
            word(OFFSET_AT), capacity(), limit(), position(), word(MARK_AT), form});
    }

    private PersistentByteArray bytes() {
        if (array == null) {
            array = reference(ARRAY_AT);
        }
        return array;
    }

    private int word(long at) {
        return block().getInt(at);
    }

    /** Where a byte of the buffer lies in the array's block. */
    private long at(int index) {
        return PersistentElements.offset(word(OFFSET_AT) + index, Byte.BYTES);
    }

    private PersistentByteBuffer place(int limit, int position, int mark) {
        objects().run(() -> {
            block().setInt(LIMIT_AT, limit);
            block().setInt(POSITION_AT, position);
            block().setInt(MARK_AT, mark);
        });
        return this;
    }

    /** The mark, if it is not behind {@code end}. */
    private int kept(int end) {
        return word(MARK_AT) > end ? NO_MARK : word(MARK_AT);
    }

    private void skip(int count) {
        block().setInt(POSITION_AT, position() + count);
    }

    private long next(int count) {
        return objects().run((Supplier<Long>) () -> {
            requireMore(count);
            long value = load(position(), count);
            skip(count);
            return value;
        });
    }

    private PersistentByteBuffer append(int count, long value) {
        requireWritable();
        objects().run(() -> {
            requireRoom(count);
            store(position(), count, value);
            skip(count);
        });
        return this;
    }

    /** So many bytes as a number whose sign its class knows. */
    private long load(int index, int count) {
        Objects.checkFromIndexSize(index, count, limit());
        return Numbers.load(bytes().block(), at(index), count, isSwapped());
    }

    private PersistentByteBuffer store(int index, int count, long value) {
        requireWritable();
        Objects.checkFromIndexSize(index, count, limit());
        Numbers.store(bytes().block(), at(index), count, isSwapped(), value);
        return this;
    }

    private boolean isSwapped() {
        return order() != ByteOrder.nativeOrder();
    }

    /** What remains, in Java. */
    private ByteBuffer copy() {
        byte[] copy = new byte[remaining()];
        get(position(), copy);
        return ByteBuffer.wrap(copy);
    }

    private void requireWritable() {
        if (isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
    }

    private void requireMore(int count) {
        if (count > remaining()) {
            throw new BufferUnderflowException();
        }
    }

    private void requireRoom(int count) {
        if (count > remaining()) {
            throw new BufferOverflowException();
        }
    }
}
