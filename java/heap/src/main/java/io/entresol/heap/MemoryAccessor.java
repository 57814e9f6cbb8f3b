package io.entresol.heap;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Memory;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * One allocation, read and written by offset. Regular allocations know their size and check against
 * it; compact ones check against the end of the heap only. The kind of heap decides what a store
 * is: a plain store, a durable one, or part of a transaction (the current one, or one of its own).
 * Byte order is the machine's; offsets need no alignment except for ordered and atomic access.
 * Reads, and stores that are not logged, call no native code. An accessor is not thread-safe.
 * Several accessors may name one allocation; its ordered and atomic accesses then work as in shared
 * memory.
 *
 * <p>A range that does not fit, or an empty range, throws {@link IndexOutOfBoundsException}. A
 * freed or never placed accessor, or a closed heap, throws {@link IllegalStateException}.
 */
public abstract class MemoryAccessor {
    private static final long NOWHERE = -1;

    private final AnyHeap heap;
    private final boolean compact;
    private long handle;
    /** Address of offset 0. */
    private long payload;
    /** Bytes that need no closer look; {@link #NOWHERE} makes every access take one. */
    private long extent = NOWHERE;
    private long size;
    private long lifetime;

    MemoryAccessor(AnyHeap heap, boolean compact) {
        this.heap = heap;
        this.compact = compact;
    }

    /** The heap that the allocation is in. */
    public AnyHeap heap() {
        return heap;
    }

    /** The allocation's name, the same after a restart. */
    public long handle() {
        requireValid();
        return handle;
    }

    /** Whether it names an allocation: placed, and not freed through this object. */
    public boolean isValid() {
        return handle != 0;
    }

    /** Bytes of a regular allocation, 0 if it names none; compact ones do not know. */
    public long size() {
        if (compact) {
            throw new UnsupportedOperationException("a compact allocation does not know its size");
        }
        return handle == 0 ? 0 : size;
    }

    /** Loads the byte at {@code offset}. */
    public byte getByte(long offset) {
        return Memory.getByte(at(offset, 1));
    }

    /** Loads the short at {@code offset}. */
    public short getShort(long offset) {
        return Memory.getShort(at(offset, 2));
    }

    /** Loads the char at {@code offset}. */
    public char getChar(long offset) {
        return Memory.getChar(at(offset, 2));
    }

    /** Loads the int at {@code offset}. */
    public int getInt(long offset) {
        return Memory.getInt(at(offset, 4));
    }

    /** Loads the long at {@code offset}. */
    public long getLong(long offset) {
        return Memory.getLong(at(offset, 8));
    }

    /** Loads the float at {@code offset}. */
    public float getFloat(long offset) {
        return Memory.getFloat(at(offset, 4));
    }

    /** Loads the double at {@code offset}. */
    public double getDouble(long offset) {
        return Memory.getDouble(at(offset, 8));
    }

    /** Loads a byte and compares it with 0. */
    public boolean getBoolean(long offset) {
        return getByte(offset) != 0;
    }

    /** Stores a byte at {@code offset}. */
    public void setByte(long offset, byte value) {
        long address = at(offset, 1);
        UndoLog own = before(address, 1);
        Memory.putByte(address, value);
        after(address, 1, own);
    }

    /** Stores a short at {@code offset}. */
    public void setShort(long offset, short value) {
        long address = at(offset, 2);
        UndoLog own = before(address, 2);
        Memory.putShort(address, value);
        after(address, 2, own);
    }

    /** Stores a char at {@code offset}. */
    public void setChar(long offset, char value) {
        long address = at(offset, 2);
        UndoLog own = before(address, 2);
        Memory.putChar(address, value);
        after(address, 2, own);
    }

    /** Stores a int at {@code offset}. */
    public void setInt(long offset, int value) {
        long address = at(offset, 4);
        UndoLog own = before(address, 4);
        Memory.putInt(address, value);
        after(address, 4, own);
    }

    /** Stores a long at {@code offset}. */
    public void setLong(long offset, long value) {
        long address = at(offset, 8);
        UndoLog own = before(address, 8);
        Memory.putLong(address, value);
        after(address, 8, own);
    }

    /** Stores a float at {@code offset}. */
    public void setFloat(long offset, float value) {
        long address = at(offset, 4);
        UndoLog own = before(address, 4);
        Memory.putFloat(address, value);
        after(address, 4, own);
    }

    /** Stores a double at {@code offset}. */
    public void setDouble(long offset, double value) {
        long address = at(offset, 8);
        UndoLog own = before(address, 8);
        Memory.putDouble(address, value);
        after(address, 8, own);
    }

    /** Stores a byte: 1 or 0. */
    public void setBoolean(long offset, boolean value) {
        setByte(offset, (byte) (value ? 1 : 0));
    }

    /** Loads; no later access is done before. {@code offset} must be aligned. */
    public int getIntAcquire(long offset) {
        return Memory.getIntAcquire(aligned(offset, 4));
    }

    /** Stores; no earlier access is done after. {@code offset} must be aligned. */
    public void setIntRelease(long offset, int value) {
        long address = aligned(offset, 4);
        UndoLog own = before(address, 4);
        Memory.putIntRelease(address, value);
        after(address, 4, own);
    }

    /** Loads, in one order with all volatile accesses. {@code offset} must be aligned. */
    public int getIntVolatile(long offset) {
        return Memory.getIntVolatile(aligned(offset, 4));
    }

    /** Stores, in one order with all volatile accesses. {@code offset} must be aligned. */
    public void setIntVolatile(long offset, int value) {
        long address = aligned(offset, 4);
        UndoLog own = before(address, 4);
        Memory.putIntVolatile(address, value);
        after(address, 4, own);
    }

    /** Stores if {@code expected} is there; whether it was. {@code offset} must be aligned. */
    public boolean compareAndSetInt(long offset, int expected, int value) {
        long address = aligned(offset, 4);
        UndoLog log = keepInWork(address, 4);
        boolean stored = Memory.compareAndSetInt(address, expected, value);
        if (stored) {
            found(log, expected, 4);
            persistAtomic(address, 4);
        } else if (log != null) {
            log.atomicFailed(4);
        }
        return stored;
    }

    /** Adds, and gives what was there. {@code offset} must be aligned. */
    public int getAndAddInt(long offset, int delta) {
        long address = aligned(offset, 4);
        UndoLog log = keepInWork(address, 4);
        int before = Memory.getAndAddInt(address, delta);
        found(log, before, 4);
        persistAtomic(address, 4);
        return before;
    }

    /** Loads; no later access is done before. {@code offset} must be aligned. */
    public long getLongAcquire(long offset) {
        return Memory.getLongAcquire(aligned(offset, 8));
    }

    /** Stores; no earlier access is done after. {@code offset} must be aligned. */
    public void setLongRelease(long offset, long value) {
        long address = aligned(offset, 8);
        UndoLog own = before(address, 8);
        Memory.putLongRelease(address, value);
        after(address, 8, own);
    }

    /** Loads, in one order with all volatile accesses. {@code offset} must be aligned. */
    public long getLongVolatile(long offset) {
        return Memory.getLongVolatile(aligned(offset, 8));
    }

    /** Stores, in one order with all volatile accesses. {@code offset} must be aligned. */
    public void setLongVolatile(long offset, long value) {
        long address = aligned(offset, 8);
        UndoLog own = before(address, 8);
        Memory.putLongVolatile(address, value);
        after(address, 8, own);
    }

    /** Stores if {@code expected} is there; whether it was. {@code offset} must be aligned. */
    public boolean compareAndSetLong(long offset, long expected, long value) {
        long address = aligned(offset, 8);
        UndoLog log = keepInWork(address, 8);
        boolean stored = Memory.compareAndSetLong(address, expected, value);
        if (stored) {
            found(log, expected, 8);
            persistAtomic(address, 8);
        } else if (log != null) {
            log.atomicFailed(8);
        }
        return stored;
    }

    /** Adds, and gives what was there. {@code offset} must be aligned. */
    public long getAndAddLong(long offset, long delta) {
        long address = aligned(offset, 8);
        UndoLog log = keepInWork(address, 8);
        long before = Memory.getAndAddLong(address, delta);
        found(log, before, 8);
        persistAtomic(address, 8);
        return before;
    }

    /** Copies bytes to an array. */
    public void copyToArray(long offset, byte[] array, int index, int length) {
        requireValid();
        Objects.checkFromIndexSize(index, length, array.length);
        Memory.copyOut(span(offset, length), array, index, length);
    }

    /** Copies bytes to a buffer, whose position moves on. */
    public void copyToByteBuffer(long offset, ByteBuffer buffer, int length) {
        requireValid();
        if (buffer.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        if (length > buffer.remaining()) {
            throw new IndexOutOfBoundsException(
                    length + " bytes into a buffer with room for " + buffer.remaining());
        }
        long address = span(offset, length);
        if (buffer.hasArray()) {
            int index = buffer.arrayOffset() + buffer.position();
            Memory.copyOut(address, buffer.array(), index, length);
            buffer.position(buffer.position() + length);
        } else {
            buffer.put(Memory.buffer(address, length));
        }
    }

    /** Copies from another allocation, or from this one; the ranges may overlap. */
    public void copyFrom(MemoryAccessor source, long sourceOffset, long offset, long length) {
        requireValid();
        source.requireValid();
        long from = source.span(sourceOffset, length);
        long to = span(offset, length);
        UndoLog own = before(to, length);
        Memory.copy(from, to, length);
        after(to, length, own);
    }

    /** Copies from an array. */
    public void copyFromArray(byte[] array, int index, long offset, int length) {
        requireValid();
        Objects.checkFromIndexSize(index, length, array.length);
        long to = span(offset, length);
        UndoLog own = before(to, length);
        Memory.copyIn(array, index, to, length);
        after(to, length, own);
    }

    /** Copies what remains in a buffer, whose position stays; an empty one is nothing to do. */
    public void copyFromByteBuffer(ByteBuffer buffer, long offset) {
        requireValid();
        int length = buffer.remaining();
        if (length == 0) {
            return;
        }
        long to = span(offset, length);
        UndoLog own = before(to, length);
        copyBytes(buffer, to);
        after(to, length, own);
    }

    /** Sets {@code length} bytes to {@code value}. */
    public void setMemory(byte value, long offset, long length) {
        requireValid();
        long to = span(offset, length);
        UndoLog own = before(to, length);
        Memory.fill(to, length, value);
        after(to, length, own);
    }

    /** Gives {@code body} a window to write to, which is logged or made durable as a whole. */
    public <T> T withRange(long offset, long length, Function<Range, T> body) {
        requireValid();
        long address = span(offset, length);
        heap.requireWritable();
        switch (heap.kind) {
            case RAW:
                return written(offset, length, address, body);
            case PERSISTENT:
                T result = written(offset, length, address, body);
                heap.persist(address, length);
                return result;
            default:
                return loggedRange(offset, length, body);
        }
    }

    /** Gives {@code body} a window to write to, which is logged or made durable as a whole. */
    public void withRange(long offset, long length, Consumer<Range> body) {
        withRange(offset, length, of(body));
    }

    /**
     * The bytes themselves, without a copy: writable in a raw heap that is, else read-only. It must
     * not be used once the block is freed. Once the heap is closed it throws
     * {@link IllegalStateException}; by JNI, where buffers cannot be told, it holds zeros.
     */
    public ByteBuffer asByteBuffer(long offset, int length) {
        requireValid();
        return heap.buffer(span(offset, length), length);
    }

    /**
     * The bytes themselves as a {@code java.lang.foreign.MemorySegment}, which this class, made for
     * Java 17, cannot name: cast the result. Writable in a raw heap that is, else read-only; once the
     * heap is closed it throws {@link IllegalStateException}. It must not be used once the block is
     * freed. {@link UnsupportedOperationException} before Java 22, and by JNI.
     */
    public Object asMemorySegment(long offset, long length) {
        requireValid();
        return heap.segment(span(offset, length), length);
    }

    /** Frees the allocation; this object is invalid afterwards. */
    public void freeMemory() {
        freeIn(heap.kind == Kind.TRANSACTIONAL);
    }

    // What kinds of blocks and accessors, and ranges, are made of.

    final long headerBytes() {
        return compact ? 0 : AnyHeap.HEADER_BYTES;
    }

    /** Names the allocation of {@code named}, whose handle is looked at first. */
    final void place(long named) {
        Handles.require(heap, named, headerBytes());
        if (heap.lifetimes() != null) {
            heap.lifetimes().current(heap, named);
        }
        placeKnown(named, compact ? 0 : Handles.size(heap, named));
    }

    /** The same, live or not: whoever reads it has its bytes kept. */
    final void placeKept(long named) {
        Handles.require(heap, named, headerBytes());
        placeTrusted(named, compact ? 0 : Handles.size(heap, named));
    }

    /** Names an allocation that was just made, with {@code bytes} bytes if it is regular. */
    final void placeKnown(long named, long bytes) {
        placeTrusted(named, bytes);
        if (heap.lifetimes() != null) {
            extent = NOWHERE;
            lifetime = heap.lifetimes().current(heap, named);
        }
    }

    private void placeTrusted(long named, long bytes) {
        handle = named;
        size = bytes;
        payload = heap.base() + named + headerBytes();
        extent = bound();
        lifetime = Lifetimes.KEPT;
    }

    final void displace() {
        handle = 0;
        extent = NOWHERE;
    }

    final void requireValid() {
        if (handle == 0) {
            throw new IllegalStateException("it names no allocation: freed, or never placed");
        }
        heap.requireOpen();
    }

    /** Address of a range that fits; {@code length} may be 0 here. */
    final long at(long offset, long length) {
        if (offset >= 0 && offset <= extent - length && heap.open) {
            return payload + offset;
        }
        return lookCloser(offset, length);
    }

    /** Address of a range that fits and is not empty. */
    final long span(long offset, long length) {
        if (length <= 0) {
            throw new IndexOutOfBoundsException(length + " bytes at " + offset);
        }
        return at(offset, length);
    }

    final void freeIn(boolean transactional) {
        requireValid();
        if (heap.lifetimes() == null) {
            heap.free(handle, transactional);
        } else {
            heap.lifetimes().free(heap, handle, lifetime, transactional);
        }
        displace();
    }

    final void flushRange(long offset, long length) {
        requireValid();
        heap.persist(span(offset, length), length);
    }

    final void addRange(long offset, long length) {
        requireValid();
        long address = span(offset, length);
        heap.requireWork("addToTransaction").keep(address, length);
    }

    /** Runs {@code store}, logged in the current transaction or one of its own. */
    final void logged(long offset, long length, Consumer<Range> store) {
        requireValid();
        span(offset, length);
        loggedRange(offset, length, of(store));
    }

    final <T> T loggedRange(long offset, long length, Function<Range, T> body) {
        requireValid();
        long address = span(offset, length);
        return Transaction.create(heap, () -> {
            heap.work().keep(address, length);
            return written(offset, length, address, body);
        });
    }

    static Function<Range, Void> of(Consumer<Range> body) {
        return range -> {
            body.accept(range);
            return null;
        };
    }

    static void copyBytes(ByteBuffer buffer, long to) {
        int length = buffer.remaining();
        if (buffer.hasArray()) {
            int index = buffer.arrayOffset() + buffer.position();
            Memory.copyIn(buffer.array(), index, to, length);
        } else {
            Memory.buffer(to, length).put(buffer.duplicate());
        }
    }

    private <T> T written(long offset, long length, long address, Function<Range, T> body) {
        Range range = new Range(this, offset, length, address);
        try {
            return body.apply(range);
        } finally {
            range.end();
        }
    }

    /** Before a store: what it needs to be undone; a log if it is a transaction of its own. */
    private UndoLog before(long address, long length) {
        heap.requireWritable();
        if (heap.kind != Kind.TRANSACTIONAL) {
            return null;
        }
        Work work = heap.work();
        if (work != null) {
            work.keep(address, length);
            return null;
        }
        UndoLog own = heap.takeLog();
        own.add(heap.base(), address - heap.base(), length);
        return own;
    }

    private void after(long address, long length, UndoLog own) {
        if (heap.kind == Kind.PERSISTENT) {
            heap.persist(address, length);
        } else if (own != null) {
            Failure unsettled = own.commit(heap, Durability.DEFAULT);
            heap.giveLog(own);
            UnsettledException.throwOf(unsettled);
        }
    }

    /** Before an atomic access: the current transaction's log, if that has new bytes to undo. */
    private UndoLog keepInWork(long address, int length) {
        heap.requireWritable();
        Work work = heap.kind == Kind.TRANSACTIONAL ? heap.work() : null;
        return work != null && work.log().addAtomic(heap.base(), address - heap.base(), length)
                ? work.log() : null;
    }

    private static void found(UndoLog log, long value, int length) {
        if (log != null) {
            log.atomicFound(value, length);
        }
    }

    /** After an atomic store outside a transaction, which another thread may have seen already. */
    private void persistAtomic(long address, long length) {
        if (heap.kind == Kind.PERSISTENT
                || heap.kind == Kind.TRANSACTIONAL && heap.work() == null) {
            heap.persist(address, length);
        }
    }

    private long aligned(long offset, int bytes) {
        long address = at(offset, bytes);
        if ((address & (bytes - 1)) != 0) {
            throw new IllegalArgumentException("offset " + offset + " of this block is no multiple"
                    + " of " + bytes + " in memory, which ordered and atomic access need");
        }
        return address;
    }

    /** The way of refused ranges, compact blocks at the end of a grown heap, and strict heaps. */
    private long lookCloser(long offset, long length) {
        requireValid();
        if (heap.lifetimes() != null) {
            heap.lifetimes().require(handle, lifetime);
        }
        long bound = compact ? heap.size() - handle : size;
        if (offset < 0 || offset > bound - length) {
            throw new IndexOutOfBoundsException(
                    length + " bytes at " + offset + " of a block with " + bound);
        }
        if (heap.lifetimes() == null) {
            extent = bound;
        }
        return payload + offset;
    }

    private long bound() {
        return compact ? heap.knownBytes() - handle : size;
    }
}
