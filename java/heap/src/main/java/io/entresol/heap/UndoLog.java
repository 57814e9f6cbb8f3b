package io.entresol.heap;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;
import java.lang.ref.Cleaner;
import java.util.Arrays;

/**
 * What a transaction changed: ranges with the bytes that were there before, in native memory, and
 * the native transaction that holds allocations and frees, begun by the first of them. The ranges
 * go to the native library in one call at commit; an abort restores them here. Not thread-safe; the
 * owner is one transaction.
 */
final class UndoLog {
    private static final Cleaner CLEANER = Cleaner.create();
    /** Ranges before the newest that a new one is compared with. */
    private static final int COMPARED = 4;
    private static final int PAIR = 16;
    private static final int BORN = -1;
    private static final int KEPT_BYTES_MAX = 1 << 20;

    private final Chunk ranges = new Chunk(64 * PAIR);
    private final Chunk before = new Chunk(4096);
    private int[] positions = new int[64];
    private int count;
    private int used;
    private int floor;
    private long transaction;

    UndoLog() {
        CLEANER.register(this, new Release(ranges, before));
    }

    /** Keeps the bytes of a range, which the commit will log. */
    void add(long base, long offset, long length) {
        if (covers(offset, length)) {
            return;
        }
        if (length > Integer.MAX_VALUE - used - 8) {
            throw new TransactionException("a transaction keeps at most 2 GiB of bytes for its"
                    + " undo; it has " + used + " and " + length + " more are too many");
        }
        before.reserve(used, used + length);
        Memory.copy(base + offset, before.address + used, length);
        int last = count - 1;
        boolean adjoins = last >= floor && positions[last] != BORN
                && offsetOf(last) + lengthOf(last) == offset
                && positions[last] + lengthOf(last) == used;
        if (adjoins) {
            Memory.putLong(ranges.address + (long) last * PAIR + 8, lengthOf(last) + length);
        } else {
            append(offset, length, used);
        }
        used += (int) length;
    }

    /** A range that needs no undo: its block was born in this transaction, or it is durable. */
    void addBorn(long offset, long length) {
        if (!covers(offset, length)) {
            append(offset, length, BORN);
        }
    }

    /** The native transaction, begun if there is none. */
    long transaction(AnyHeap heap) {
        if (transaction == 0) {
            transaction = heap.checked(Native.transactionBegin(heap.address()));
        }
        return transaction;
    }

    boolean hasTransaction() {
        return transaction != 0;
    }

    /** A point to roll back to; ranges from here on do not lean on earlier ones. */
    Mark mark() {
        long savepoint = transaction == 0
                ? Mark.NONE : Native.transactionSavepoint(transaction);
        Mark mark = new Mark(count, used, floor, savepoint);
        floor = count;
        return mark;
    }

    /** The part since {@code mark} belongs to the whole again. */
    void merge(Mark mark) {
        floor = mark.floor;
    }

    /** Undoes all since {@code mark}. */
    void rollback(AnyHeap heap, Mark mark) {
        restore(heap.base(), mark.count);
        count = mark.count;
        used = mark.used;
        floor = mark.floor;
        if (transaction == 0) {
            return;
        }
        if (mark.savepoint == Mark.NONE) {
            Native.transactionAbort(transaction);
            transaction = 0;
        } else {
            heap.checked(Native.transactionRollback(transaction, mark.savepoint));
        }
    }

    /** Undoes all. */
    void abort(AnyHeap heap) {
        restore(heap.base(), 0);
        if (transaction != 0) {
            Native.transactionAbort(transaction);
        }
        clear();
    }

    /** Makes all of it one durable change, or undoes it and throws. */
    void commit(AnyHeap heap, Durability durability) {
        if (count == 0 && transaction == 0) {
            return;
        }
        long owned = transaction;
        transaction = 0;
        long result = Native.transactionCommit(
                heap.address(), owned, ranges.address, count, durability.code());
        if (result < 0) {
            restore(heap.base(), 0);
            clear();
            throw new TransactionException("the transaction was not committed and is undone: "
                    + Failure.of(result).sentence());
        }
        clear();
    }

    private void clear() {
        count = 0;
        used = 0;
        floor = 0;
        transaction = 0;
        ranges.shrink(KEPT_BYTES_MAX);
        before.shrink(KEPT_BYTES_MAX);
    }

    private void restore(long base, int to) {
        for (int index = count - 1; index >= to; index--) {
            if (positions[index] != BORN) {
                Memory.copy(before.address + positions[index], base + offsetOf(index),
                        lengthOf(index));
            }
        }
    }

    private boolean covers(long offset, long length) {
        int oldest = Math.max(floor, count - COMPARED);
        for (int index = count - 1; index >= oldest; index--) {
            long start = offsetOf(index);
            if (start <= offset && offset + length <= start + lengthOf(index)) {
                return true;
            }
        }
        return false;
    }

    private void append(long offset, long length, int position) {
        ranges.reserve((long) count * PAIR, (long) (count + 1) * PAIR);
        if (count == positions.length) {
            positions = Arrays.copyOf(positions, count * 2);
        }
        long pair = ranges.address + (long) count * PAIR;
        Memory.putLong(pair, offset);
        Memory.putLong(pair + 8, length);
        positions[count] = position;
        count++;
    }

    private long offsetOf(int index) {
        return Memory.getLong(ranges.address + (long) index * PAIR);
    }

    private long lengthOf(int index) {
        return Memory.getLong(ranges.address + (long) index * PAIR + 8);
    }

    /** A point in a log. */
    static final class Mark {
        static final long NONE = -1;

        private final int count;
        private final int used;
        private final int floor;
        private final long savepoint;

        private Mark(int count, int used, int floor, long savepoint) {
            this.count = count;
            this.used = used;
            this.floor = floor;
            this.savepoint = savepoint;
        }
    }

    /** Native memory that grows. */
    private static final class Chunk {
        private final long first;
        private long address;
        private long bytes;

        Chunk(long bytes) {
            this.first = bytes;
            this.bytes = bytes;
            this.address = allocated(bytes);
        }

        void reserve(long used, long wanted) {
            if (wanted > bytes) {
                long larger = Math.max(wanted, bytes * 2);
                long moved = allocated(larger);
                Memory.copy(address, moved, used);
                Native.bufferFree(address, bytes);
                address = moved;
                bytes = larger;
            }
        }

        void shrink(long most) {
            if (bytes > most) {
                Native.bufferFree(address, bytes);
                address = allocated(first);
                bytes = first;
            }
        }

        private static long allocated(long bytes) {
            long address = Native.bufferAllocate(bytes);
            if (address == 0) {
                throw new OutOfMemoryError("no " + bytes + " bytes of native memory for undo");
            }
            return address;
        }
    }

    /** Frees the memory of a log that nothing refers to any more. */
    private static final class Release implements Runnable {
        private final Chunk ranges;
        private final Chunk before;

        Release(Chunk ranges, Chunk before) {
            this.ranges = ranges;
            this.before = before;
        }

        @Override
        public void run() {
            Native.bufferFree(ranges.address, ranges.bytes);
            Native.bufferFree(before.address, before.bytes);
        }
    }
}
