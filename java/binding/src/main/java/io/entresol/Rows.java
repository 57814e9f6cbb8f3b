package io.entresol;

import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Native memory for requests: the row of words, key, value, and the place for an outcome. A few
 * pieces are kept for later callers in any thread.
 */
final class Rows {
    /** Words of a request. */
    static final int ROW_BYTES = 16 * Long.BYTES;
    /** Room for an outcome with a value of ordinary size. */
    private static final int OUTCOME_BYTES = 16 << 10;
    private static final int KEPT_BYTES = 64 << 10;
    private static final int PLACES = 64;

    private final AtomicReferenceArray<Row> kept = new AtomicReferenceArray<>(PLACES);

    /** Memory of one request. */
    static final class Row {
        private final long address;
        private final long bytes;
        private long end;

        private Row(long bytes) {
            this.address = StoreException.checked(Native.bufferAllocate(bytes));
            this.bytes = bytes;
        }

        /** Address of the row. */
        long address() {
            return address;
        }

        /** Sets a word of the row. */
        void set(int word, long value) {
            Memory.putLong(address + (long) word * Long.BYTES, value);
        }

        /** The first word, which tells whether the request was answered. */
        boolean isAnswered() {
            return Memory.getLong(address) == 1;
        }

        /** Copies an array in, and says in the row where it is. */
        void append(int word, byte[] array) {
            Memory.copyIn(array, 0, address + end, array.length);
            advance(word, array.length);
        }

        /** Copies what remains of a buffer in; its position stays. */
        void append(int word, ByteBuffer buffer) {
            copyIn(buffer, address + end);
            advance(word, buffer.remaining());
        }

        /** Copies what remains of buffers in, one after another; their positions stay. */
        void append(int word, List<ByteBuffer> buffers) {
            long length = 0;
            for (ByteBuffer buffer : buffers) {
                copyIn(buffer, address + end + length);
                length += buffer.remaining();
            }
            advance(word, length);
        }

        /** Says in the row where the outcome goes; the address of it. */
        long outcome() {
            set(14, address + end);
            set(15, bytes - end);
            return address + end;
        }

        private static void copyIn(ByteBuffer buffer, long to) {
            int length = buffer.remaining();
            if (buffer.hasArray()) {
                int from = buffer.arrayOffset() + buffer.position();
                Memory.copyIn(buffer.array(), from, to, length);
            } else if (length > 0) {
                Memory.buffer(to, length).put(buffer.duplicate());
            }
        }

        private void advance(int word, long length) {
            set(word, address + end);
            set(word + 1, length);
            end += (length + 7L) & ~7L;
        }
    }

    /** Memory that holds a row of zeros and so many bytes of key and value. */
    Row take(long length) {
        long needed = ROW_BYTES + length + 16 + OUTCOME_BYTES;
        Row row = null;
        if (needed <= KEPT_BYTES) {
            row = kept.getAndSet(place(), null);
        }
        if (row == null) {
            row = new Row(Math.max(needed, KEPT_BYTES));
        }
        Memory.fill(row.address, ROW_BYTES, (byte) 0);
        row.end = ROW_BYTES;
        return row;
    }

    /** Keeps memory for the next request, or frees it. */
    void give(Row row) {
        if (row.bytes > KEPT_BYTES || !kept.compareAndSet(place(), null, row)) {
            Native.bufferFree(row.address, row.bytes);
        }
    }

    /** Frees what is kept. */
    void close() {
        for (int place = 0; place < PLACES; place++) {
            Row row = kept.getAndSet(place, null);
            if (row != null) {
                Native.bufferFree(row.address, row.bytes);
            }
        }
    }

    private static int place() {
        long id = Thread.currentThread().getId();
        return (int) (id * 0x9E3779B97F4A7C15L >>> 58);
    }
}
