package io.entresol;

import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Native memory that rows, batches and requests of ordered tables lie in. A few pieces are kept for
 * later callers in any thread. Memory lives as long as a buffer over it is known to somebody: one
 * that is kept too long shows other bytes, and never freed memory.
 */
final class Pages {
    /** What all pages have at least. */
    static final int BYTES = 64 << 10;
    /** Releases what nobody refers to any more. */
    static final Cleaner CLEANER = Cleaner.create();
    private static final int PLACES = 64;

    private final AtomicReferenceArray<Page> kept = new AtomicReferenceArray<>(PLACES);

    /** A piece of memory, of one thread at a time. */
    static final class Page {
        private final long address;
        private final int bytes;
        private final ByteBuffer buffer;

        private Page(int bytes) {
            long address = StoreException.checked(Native.bufferAllocate(bytes));
            this.address = address;
            this.bytes = bytes;
            buffer = Memory.buffer(address, bytes).order(ByteOrder.LITTLE_ENDIAN);
            CLEANER.register(buffer, () -> Native.bufferFree(address, bytes));
        }

        /** The address of a byte. */
        long address(int at) {
            return address + at;
        }

        int bytes() {
            return bytes;
        }

        /** All of it; its position stays 0. */
        ByteBuffer buffer() {
            return buffer;
        }

        int word(int at) {
            return Memory.getInt(address + at);
        }

        void setWord(int at, int value) {
            Memory.putInt(address + at, value);
        }

        long longWord(int at) {
            return Memory.getLong(address + at);
        }

        void setLong(int at, long value) {
            Memory.putLong(address + at, value);
        }

        byte[] copy(int at, int length) {
            byte[] copy = new byte[length];
            Memory.copyOut(address + at, copy, 0, length);
            return copy;
        }

        void copyTo(byte[] to, int index, int at, int length) {
            Memory.copyOut(address + at, to, index, length);
        }

        /** A slice that nobody can write to. */
        ByteBuffer slice(int at, int length) {
            return buffer.slice(at, length).asReadOnlyBuffer();
        }

        /** Copies bytes in; where they end. */
        int set(int at, byte[] bytes) {
            Memory.copyIn(bytes, 0, address + at, bytes.length);
            return at + bytes.length;
        }

        /** Copies what remains of a buffer in, whose position stays; where it ends. */
        int set(int at, ByteBuffer bytes) {
            int length = bytes.remaining();
            if (bytes.hasArray()) {
                int from = bytes.arrayOffset() + bytes.position();
                Memory.copyIn(bytes.array(), from, address + at, length);
            } else {
                buffer.put(at, bytes, bytes.position(), length);
            }
            return at + length;
        }

        /** Copies native memory in. */
        void set(int at, long from, int length) {
            Memory.copy(from, address + at, length);
        }
    }

    /** A page of at least so many bytes, or of the usual size. */
    Page take(long bytes) {
        if (bytes > Integer.MAX_VALUE - 8) {
            throw new StoreException(StoreException.Kind.INVALID,
                    bytes + " bytes at once; expected less than 2 GiB");
        }
        Page page = bytes <= BYTES ? kept.getAndSet(place(), null) : null;
        return page == null ? new Page((int) Math.max(bytes, BYTES)) : page;
    }

    /** Takes a page back. */
    void give(Page page) {
        if (page.bytes == BYTES) {
            kept.set(place(), page);
        }
    }

    private static int place() {
        long id = Thread.currentThread().getId();
        return (int) (id * 0x9E3779B97F4A7C15L >>> 58);
    }
}
