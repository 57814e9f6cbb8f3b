package io.entresol.heap;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The changes of a transaction: ranges with their old bytes, in native memory, and the native
 * transaction with its allocations and frees, which the first of these begins. At commit the ranges
 * go to the native library in one call; an abort restores them here. The owner is one transaction
 * and one thread. Another thread may {@link #restore} the ranges of a raw heap under the monitor,
 * which all code that moves ranges there takes, too.
 */
final class UndoLog {
    private static final Cleaner CLEANER = Cleaner.create();
    /** Ranges before the newest that a new one is compared with. */
    private static final int COMPARED = 4;
    private static final int PAIR = 16;
    /** In place of where the old bytes are: none, since the block was born in the transaction. */
    private static final int BORN = -1;
    /** None, since the bytes were durable before the transaction's end and stay. */
    private static final int DURABLE = -2;
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
        if (covers(offset, length, BORN)) {
            return;
        }
        keep(base, offset, length);
        int last = count - 1;
        boolean adjoins = last >= floor && positions[last] >= 0
                && offsetOf(last) + lengthOf(last) == offset
                && positions[last] + lengthOf(last) == used;
        if (adjoins) {
            Memory.putLong(ranges.address + (long) last * PAIR + 8, lengthOf(last) + length);
        } else {
            append(offset, length, used);
        }
        used += (int) length;
    }

    /** A range that needs no undo: its block was born in this transaction. */
    synchronized void addBorn(long offset, long length) {
        if (!covers(offset, length, BORN)) {
            append(offset, length, BORN);
        }
    }

    /** A range whose bytes an abort leaves as they are: they are durable already. */
    synchronized void addDurable(long offset, long length) {
        if (!covers(offset, length, DURABLE)) {
            append(offset, length, DURABLE);
        }
    }

    /**
     * Keeps the bytes that an atomic access is about to change; whether they were not kept before,
     * so that {@link #atomicFound} or {@link #atomicFailed} has to follow.
     */
    boolean addAtomic(long base, long offset, int length) {
        if (covers(offset, length, BORN)) {
            return false;
        }
        keep(base, offset, length);
        append(offset, length, used);
        used += length;
        return true;
    }

    /** What the access found: another thread may have stored it after the bytes were kept. */
    void atomicFound(long value, int length) {
        long kept = before.address + used - length;
        if (length == Integer.BYTES) {
            Memory.putInt(kept, (int) value);
        } else {
            Memory.putLong(kept, value);
        }
    }

    /** The access changed nothing, so that nothing is to be undone. */
    void atomicFailed(int length) {
        count--;
        used -= length;
    }

    /**
     * Makes the parts of a range durable that this log has no old bytes of and that were not born:
     * all of them together, or after a failure none. Later parts of this log leave them as they
     * are.
     */
    synchronized void persistForeign(AnyHeap heap, long offset, long length) {
        List<long[]> parts = foreign(offset, length);
        // A block born in the transaction is zeroed by its commit, so that what was stored there
        // has to come after that.
        parts.forEach(part -> addDurable(part[0], part[1] - part[0]));
        heap.checked(persist(heap, parts, Durability.DEFAULT));
    }

    /** The parts of a range that this log has no old bytes of and that were not born. */
    private List<long[]> foreign(long offset, long length) {
        List<long[]> left = new ArrayList<>();
        left.add(new long[] {offset, offset + length});
        for (int index = count - 1; index >= 0 && !left.isEmpty(); index--) {
            if (positions[index] != DURABLE) {
                leaveOut(left, offsetOf(index), offsetOf(index) + lengthOf(index));
            }
        }
        return left;
    }

    /** Takes a range out of those that are left, pairs of start and end. */
    private static void leaveOut(List<long[]> left, long from, long to) {
        for (int at = left.size() - 1; at >= 0; at--) {
            long[] one = left.get(at);
            if (from < one[1] && one[0] < to) {
                left.remove(at);
                if (one[0] < from) {
                    left.add(new long[] {one[0], from});
                }
                if (to < one[1]) {
                    left.add(new long[] {to, one[1]});
                }
            }
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
    synchronized Mark mark() {
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
    synchronized void rollback(AnyHeap heap, Mark mark) {
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

    /**
     * Makes all of it one durable change, or undoes it and throws. The result is null, or why the
     * change, which is made, may be gone once the heap is opened again.
     */
    Failure commit(AnyHeap heap, Durability durability) {
        if (count == 0 && transaction == 0) {
            return null;
        }
        long owned = transaction;
        transaction = 0;
        long result = Native.transactionCommit(
                heap.address(), owned, ranges.address, count, durability.code());
        Failure failure = result < 0 ? Failure.of(result) : null;
        boolean made = failure == null || failure.kind() == Failure.UNSETTLED;
        if (!made) {
            restore(heap.base(), 0);
        }
        clear();
        if (!made) {
            throw new TransactionException("the transaction was not committed and is undone: "
                    + failure.sentence());
        }
        return failure;
    }

    /** Undoes all, but keeps the old bytes: {@link #restore} puts them back again. */
    void takeBack(long base) {
        restore(base);
        if (transaction != 0) {
            Native.transactionAbort(transaction);
            transaction = 0;
        }
    }

    /** Puts the old bytes back, and keeps them. */
    void restore(long base) {
        restore(base, 0);
    }

    /** Makes the bytes durable that old ones are kept of; the native library's failure, or 0. */
    long persist(AnyHeap heap) {
        List<long[]> kept = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            if (positions[index] >= 0) {
                kept.add(new long[] {offsetOf(index), offsetOf(index) + lengthOf(index)});
            }
        }
        return persist(heap, kept, Durability.SYNC);
    }

    /** Makes parts, each a start and an end, durable with one record; the failure, or 0. */
    private long persist(AnyHeap heap, List<long[]> parts, Durability durability) {
        if (parts.isEmpty()) {
            return 0;
        }
        // Behind the ranges of the log, which end at `count`.
        long first = (long) count * PAIR;
        ranges.reserve(first, first + (long) parts.size() * PAIR);
        long pair = ranges.address + first;
        for (long[] part : parts) {
            Memory.putLong(pair, part[0]);
            Memory.putLong(pair + 8, part[1] - part[0]);
            pair += PAIR;
        }
        return Native.transactionCommit(heap.address(), 0, ranges.address + first, parts.size(),
                durability.code());
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
            if (positions[index] >= 0) {
                Memory.copy(before.address + positions[index], base + offsetOf(index),
                        lengthOf(index));
            }
        }
    }

    private void keep(long base, long offset, long length) {
        if (length > Integer.MAX_VALUE - used - 8) {
            throw new TransactionException("a transaction keeps at most 2 GiB of bytes for its"
                    + " undo; it has " + used + " and " + length + " more are too many");
        }
        before.reserve(used, used + length);
        Memory.copy(base + offset, before.address + used, length);
    }

    /** Whether one of the newest ranges, kept or {@code lowest} at least, contains this one. */
    private boolean covers(long offset, long length, int lowest) {
        int oldest = Math.max(floor, count - COMPARED);
        for (int index = count - 1; index >= oldest; index--) {
            long start = offsetOf(index);
            if (positions[index] >= lowest && start <= offset
                    && offset + length <= start + lengthOf(index)) {
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
