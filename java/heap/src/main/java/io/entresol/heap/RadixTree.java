package io.entresol.heap;

import io.entresol.heap.engine.Memory;
import io.entresol.heap.engine.Native;
import io.entresol.heap.engine.NativeBlocks;
import io.entresol.heap.engine.RadixSearch;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.NoSuchElementException;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;

/**
 * A persistent ordered map from byte strings to longs, in a heap of any kind. Keys are ordered as
 * unsigned bytes, a key before longer keys that begin with it; the empty key and the value 0 are
 * allowed. Every change is a transaction, or part of the thread's current one. Java memory holds
 * nothing of the map. Reads may run beside changes of other threads; a second transaction that
 * changes the map waits for the first to end.
 */
public final class RadixTree {
    /** Offset of the root's link in the header. */
    private static final long ROOT = 8;
    /** So often a search begins anew before it is left to the native library. */
    private static final int SEARCHES = 4;

    private final AnyHeap heap;
    private final long handle;
    private final long address;
    /** Address of the root's link. */
    private final long root;
    /** Address of the count of changes. */
    private final long version;
    private boolean live = true;

    private RadixTree(AnyHeap heap, long handle) {
        this.heap = heap;
        this.handle = handle;
        long opened = heap.checked(Native.treeOpen(heap.address(), handle));
        this.address = opened;
        this.root = heap.base() + handle + ROOT;
        this.version = Native.treeVersion(opened);
        AnyHeap.attach(this, () -> Native.treeClose(opened));
    }

    /** Makes an empty map. Its handle is to be stored where it will be found again. */
    public static RadixTree create(AnyHeap heap) {
        heap.requireOpen();
        long handle = Transaction.create(heap, () ->
                heap.checked(heap.guarded(() -> Native.treeCreate(
                        heap.work().log().transaction(heap))).getAsLong()));
        return new RadixTree(heap, handle);
    }

    /** The map of that handle. */
    public static RadixTree open(AnyHeap heap, long handle) {
        heap.requireHandle(handle);
        return new RadixTree(heap, handle);
    }

    /** The map's handle, the same after a restart. */
    public long handle() {
        requireLive();
        return handle;
    }

    /** The heap it lies in. */
    public AnyHeap heap() {
        return heap;
    }

    /** Number of entries. */
    public long size() {
        requireLive();
        return done(Native.treeEntries(address));
    }

    /** The value of {@code key}, or {@code absent} if it is not there. */
    public long get(byte[] key, long absent) {
        long before = Memory.getLongAcquire(version);
        long found = search(key);
        if (found > 0) {
            long value = Memory.getLong(found);
            if (isUnchangedSince(before)) {
                return value;
            }
        } else if (found == RadixSearch.ABSENT && isUnchangedSince(before)) {
            return absent;
        }
        return getAnew(key, absent);
    }

    /** Whether {@code key} is there. */
    public boolean contains(byte[] key) {
        requireLive();
        for (int search = 0; search < SEARCHES; search++) {
            long before = Memory.getLongAcquire(version);
            long found = search(key);
            if (found != RadixSearch.UNCLEAR && isUnchangedSince(before)) {
                return found != RadixSearch.ABSENT;
            }
        }
        Scratch scratch = Scratch.of(key);
        long found = Native.treeGet(address, scratch.key(), key.length, scratch.out());
        return value(found, scratch, 0) != 0 || found != 0;
    }

    /** Gives {@code key} a value; the one before, or {@code absent} if there was none. */
    public long put(byte[] key, long value, long absent) {
        requireLive();
        long transaction = transaction();
        Scratch scratch = Scratch.of(key);
        long found = awaited(() -> Native.treePut(
                address, transaction, scratch.key(), key.length, value, scratch.out()));
        return value(found, scratch, absent);
    }

    /** Removes {@code key}; its value, or {@code absent} if it was not there. */
    public long remove(byte[] key, long absent) {
        requireLive();
        long transaction = transaction();
        Scratch scratch = Scratch.of(key);
        long found = awaited(() -> Native.treeRemove(
                address, transaction, scratch.key(), key.length, scratch.out()));
        return value(found, scratch, absent);
    }

    /**
     * Makes other transactions that change the map wait until the thread's current one ends, so
     * that what it reads next stays as it is. Changes nothing.
     */
    public void hold() {
        requireLive();
        long transaction = heap.requireWork("hold").log().transaction(heap);
        awaited(() -> Native.treeHold(address, transaction));
    }

    /** Removes all entries. */
    public void clear() {
        requireLive();
        long transaction = transaction();
        awaited(() -> Native.treeClear(address, transaction));
    }

    /** Frees the map with all entries. It is there again if the transaction is undone. */
    public void free() {
        requireLive();
        long transaction = transaction();
        awaited(() -> Native.treeDestroy(address, transaction));
        live = false;
        heap.whenSettled(() -> { }, () -> live = true);
    }

    /** Moves the upper half of the entries to a new map; null if there are fewer than two. */
    public RadixTree split() {
        requireLive();
        long transaction = transaction();
        long other = awaited(() -> Native.treeSplit(address, transaction));
        return other == 0 ? null : new RadixTree(heap, other);
    }

    /** All entries as they are now, from the first on. */
    public Cursor entries() {
        return range(null, false, null, false, false);
    }

    /**
     * The entries between two keys as they are now; later changes do not show. A bound of null is
     * none; {@code backwards} begins at the upper one. Waits for a transaction of another thread that
     * changes the map.
     */
    public Cursor range(byte[] lower, boolean lowerInclusive, byte[] upper,
            boolean upperInclusive, boolean backwards) {
        requireLive();
        long transaction = transaction();
        try (Bounds bounds = new Bounds(lower, lowerInclusive, upper, upperInclusive)) {
            long range = awaited(() ->
                    Native.treeRange(address, transaction, bounds.address()));
            return new Cursor(this, range, backwards);
        }
    }

    /**
     * Gives the handles of all blocks that the map at {@code handle} consists of, its header
     * included. Nobody may change the map meanwhile.
     */
    public static void forEachBlock(AnyHeap heap, long handle, LongConsumer visit) {
        heap.requireHandle(handle);
        long list = heap.checked(NativeBlocks.ofTree(heap.address(), handle));
        BlockList.forEach(heap, list, visit);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof RadixTree && ((RadixTree) other).heap == heap
                && ((RadixTree) other).handle == handle;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(handle);
    }

    private long getAnew(byte[] key, long absent) {
        requireLive();
        for (int search = 1; search < SEARCHES; search++) {
            long before = Memory.getLongAcquire(version);
            long found = search(key);
            long value = found > 0 ? Memory.getLong(found) : absent;
            if (found != RadixSearch.UNCLEAR && isUnchangedSince(before)) {
                return value;
            }
        }
        Scratch scratch = Scratch.of(key);
        long found = Native.treeGet(address, scratch.key(), key.length, scratch.out());
        return value(found, scratch, absent);
    }

    private long search(byte[] key) {
        return RadixSearch.find(
                heap.base(), heap.firstHandle(), heap.knownBytes(), root, key);
    }

    /** Whether all that was read since the count was {@code before} belonged together. */
    private boolean isUnchangedSince(long before) {
        VarHandle.loadLoadFence();
        boolean unchanged = (before & 1) == 0 && Memory.getLong(version) == before;
        Reference.reachabilityFence(this);
        requireLive();
        return unchanged;
    }

    private long transaction() {
        Work work = heap.work();
        return work == null ? 0 : work.log().transaction(heap);
    }

    private long value(long found, Scratch scratch, long absent) {
        long value = done(found) == 0 ? absent : Memory.getLong(scratch.out());
        Reference.reachabilityFence(scratch);
        return value;
    }

    /** What {@code change} gives, once no other transaction is in its way. */
    private long awaited(LongSupplier change) {
        LongSupplier guarded = heap.guarded(change);
        long result = guarded.getAsLong();
        if (result < 0) {
            result = heap.awaited(result, guarded);
        }
        Reference.reachabilityFence(this);
        return result;
    }

    /** The result of a native function, until whose end the map must not be cleaned away. */
    private long done(long result) {
        Reference.reachabilityFence(this);
        return heap.checked(result);
    }

    private void requireLive() {
        heap.requireOpen();
        if (!live) {
            throw new IllegalStateException("the map was freed");
        }
    }

    /** Entries of one moment, one after the other; closed by itself at the end. One thread's. */
    public static final class Cursor implements AutoCloseable {
        private static final int BATCH_BYTES = 2048;

        private final RadixTree tree;
        private final boolean backwards;
        private final View view;
        private final Cleaner.Cleanable closing;
        private long remaining;
        private long at;
        private long next;
        private boolean ended;

        private Cursor(RadixTree tree, long range, boolean backwards) {
            this.tree = tree;
            this.backwards = backwards;
            this.view = new View(range, tree.heap.cursors);
            this.closing = AnyHeap.attach(this, view);
        }

        /** Moves to the next entry; false if there is none. */
        public boolean next() {
            if (remaining == 0 && (ended || !read())) {
                close();
                return false;
            }
            at = next;
            long length = Memory.getLong(at + 8);
            next = at + 16 + ((length + 7) & -8);
            remaining--;
            return true;
        }

        /** The entry's key. */
        public byte[] key() {
            requireEntry();
            byte[] key = new byte[(int) Memory.getLong(at + 8)];
            Memory.copyOut(at + 16, key, 0, key.length);
            return key;
        }

        /** The entry's value. */
        public long value() {
            requireEntry();
            return Memory.getLong(at);
        }

        /** Lets go of the moment; blocks freed since can be used again. */
        @Override
        public void close() {
            ended = true;
            remaining = 0;
            at = 0;
            closing.clean();
        }

        private boolean read() {
            tree.heap.requireOpen();
            view.reserve(BATCH_BYTES);
            remaining = fill();
            if (remaining == 0) {
                long needed = -Memory.getLong(view.buffer);
                if (needed == 0) {
                    return false;
                }
                view.reserve(needed);
                remaining = fill();
            }
            next = view.buffer;
            return true;
        }

        private long fill() {
            long filled = Native.rangeNext(
                    view.range, backwards ? 1 : 0, view.buffer, view.bytes);
            Reference.reachabilityFence(this);
            return tree.heap.checked(filled);
        }

        private void requireEntry() {
            if (at == 0) {
                throw new NoSuchElementException();
            }
        }
    }

    /** What a cursor holds in native memory. */
    private static final class View implements Runnable {
        private final long range;
        private final Uncollected cursors;
        private long buffer;
        private long bytes;

        View(long range, Uncollected cursors) {
            this.range = range;
            this.cursors = cursors;
            cursors.added();
        }

        void reserve(long wanted) {
            if (bytes < wanted) {
                release(buffer, bytes);
                bytes = wanted;
                buffer = Native.bufferAllocate(wanted);
            }
        }

        @Override
        public void run() {
            Native.rangeClose(range);
            release(buffer, bytes);
            cursors.removed();
        }

        private static void release(long buffer, long bytes) {
            if (buffer != 0) {
                Native.bufferFree(buffer, bytes);
            }
        }
    }

    /** Two bounds, as the native library reads them. */
    private static final class Bounds implements AutoCloseable {
        private static final int WORDS = 6;

        private final long bytes;
        private final long address;

        Bounds(byte[] lower, boolean lowerInclusive, byte[] upper, boolean upperInclusive) {
            int first = lower == null ? 0 : lower.length;
            int second = upper == null ? 0 : upper.length;
            bytes = (long) WORDS * Long.BYTES + first + second;
            address = Native.bufferAllocate(bytes);
            long keys = address + (long) WORDS * Long.BYTES;
            put(0, lower, lowerInclusive, keys);
            put(3, upper, upperInclusive, keys + first);
        }

        long address() {
            return address;
        }

        @Override
        public void close() {
            Native.bufferFree(address, bytes);
        }

        private void put(int word, byte[] key, boolean inclusive, long to) {
            if (key != null) {
                Memory.copyIn(key, 0, to, key.length);
                Memory.putLong(address + word * 8L, to);
                Memory.putLong(address + word * 8L + 8, key.length);
                Memory.putLong(address + word * 8L + 16, inclusive ? 1 : 2);
            }
        }
    }
}
