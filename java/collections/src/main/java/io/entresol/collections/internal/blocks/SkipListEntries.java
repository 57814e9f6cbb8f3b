package io.entresol.collections.internal.blocks;

import io.entresol.collections.Tracer;
import io.entresol.heap.MemoryAccessor;
import io.entresol.heap.Range;
import io.entresol.heap.ReadGuard;
import io.entresol.heap.TransactionalHeap;
import io.entresol.heap.TransactionalMemoryBlock;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/**
 * Entries in a skip list (W. Pugh, "Skip lists: a probabilistic alternative to balanced trees",
 * 1990). The hash of a key decides how many lists it is on. One transaction at a time changes the
 * skip list. Readers run beside it under a guard: a node is complete before a list leads to it, it
 * joins lists from the lowest up and leaves them from the highest down, and a removed node still
 * leads to the next one.
 */
public final class SkipListEntries implements Entries {
    /** On average every fourth node of a list is on the next one. */
    private static final int LISTS_MAX = 16;
    private static final int BITS_A_LIST = 2;

    private static final VarHandle LONGS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private static final long KEY_BYTES_AT = 0;
    private static final long LISTS_AT = 4;
    private static final long WORD_AT = 8;
    private static final long NEXT_AT = 16;

    private final TransactionalHeap heap;
    private final MemoryAccessor header;
    private final Turn turn;
    private final long head;
    private final long seed;

    /** The entries whose header has these words. */
    public SkipListEntries(TransactionalHeap heap, TransactionalMemoryBlock header) {
        this.heap = heap;
        this.header = header;
        this.turn = Turn.open(heap, header);
        this.head = header.getLong(Header.FIRST_AT);
        this.seed = header.getLong(Header.SEED_AT);
    }

    /** Makes a head, which is on all lists; gives what writes the words of the header. */
    public static Consumer<Range> empty(TransactionalHeap heap) {
        long seed = ThreadLocalRandom.current().nextLong();
        long head = allocate(heap, LISTS_MAX, new byte[0], 0);
        return Turn.empty(heap).andThen(range -> {
            range.setLong(Header.FIRST_AT, head);
            range.setLong(Header.SEED_AT, seed);
        });
    }

    @Override
    public long size() {
        return header.getLongAcquire(Header.COUNT_AT);
    }

    @Override
    public long get(byte[] key) {
        try (ReadGuard guard = heap.readGuard()) {
            long found = next(before(key, false, null), 0);
            return found != 0 && compare(found, key) == 0 ? at(found).getLongAcquire(WORD_AT) : 0;
        }
    }

    @Override
    public long put(byte[] key, long word) {
        turn.take();
        long[] path = new long[LISTS_MAX];
        long found = next(before(key, false, path), 0);
        if (found != 0 && compare(found, key) == 0) {
            TransactionalMemoryBlock node = at(found);
            long old = node.getLong(WORD_AT);
            node.setLongRelease(WORD_AT, word);
            return old;
        }
        int lists = lists(key);
        long node = allocate(heap, lists, key, word);
        TransactionalMemoryBlock fresh = at(node);
        for (int list = 0; list < lists; list++) {
            fresh.setLong(nextAt(list), next(path[list], list));
        }
        for (int list = 0; list < lists; list++) {
            at(path[list]).setLongRelease(nextAt(list), node);
        }
        header.setLongRelease(Header.COUNT_AT, size() + 1);
        return 0;
    }

    @Override
    public long remove(byte[] key) {
        turn.take();
        long[] path = new long[LISTS_MAX];
        long found = next(before(key, false, path), 0);
        if (found == 0 || compare(found, key) != 0) {
            return 0;
        }
        TransactionalMemoryBlock node = at(found);
        for (int list = node.getInt(LISTS_AT) - 1; list >= 0; list--) {
            at(path[list]).setLongRelease(nextAt(list), next(found, list));
        }
        header.setLongRelease(Header.COUNT_AT, size() - 1);
        long word = node.getLong(WORD_AT);
        heap.memoryBlockFromHandle(found).free();
        return word;
    }

    @Override
    public void clear(LongConsumer words) {
        turn.take();
        long first = next(head, 0);
        at(head).setMemory((byte) 0, NEXT_AT, LISTS_MAX * (long) Long.BYTES);
        header.setLongRelease(Header.COUNT_AT, 0);
        for (long node = first; node != 0;) {
            TransactionalMemoryBlock block = heap.memoryBlockFromHandle(node);
            node = next(node, 0);
            words.accept(block.getLong(WORD_AT));
            block.free();
        }
    }

    @Override
    public void hold() {
        turn.take();
    }

    @Override
    public Walk walk(Bounds bounds, boolean backwards) {
        return bounds.isEmpty() ? Walk.EMPTY : new NodeWalk(bounds, backwards);
    }

    @Override
    public void trace(Tracer tracer) {
        turn.trace(tracer);
        for (long node = head; node != 0; node = next(node, 0)) {
            tracer.block(node);
        }
    }

    /**
     * The last node before {@code key}, or the last not behind it if {@code inclusive}; the head if
     * there is none; with a key of null the last of all. {@code path}, unless null, gets that node
     * of each list.
     */
    private long before(byte[] key, boolean inclusive, long[] path) {
        long node = head;
        for (int list = LISTS_MAX - 1; list >= 0; list--) {
            for (long next = next(node, list); next != 0; next = next(node, list)) {
                int order = key == null ? -1 : compare(next, key);
                if (order > 0 || order == 0 && !inclusive) {
                    break;
                }
                node = next;
            }
            if (path != null) {
                path[list] = node;
            }
        }
        return node;
    }

    private long next(long node, int list) {
        return at(node).getLongAcquire(nextAt(list));
    }

    private int lists(byte[] key) {
        int lists = Long.numberOfTrailingZeros(Hash.of(key, seed)) / BITS_A_LIST + 1;
        return Math.min(lists, LISTS_MAX);
    }

    private TransactionalMemoryBlock at(long node) {
        return heap.guardedMemoryBlock(node);
    }

    /** Compares the key of {@code node} with {@code key}, as unsigned bytes. */
    private int compare(long node, byte[] key) {
        TransactionalMemoryBlock block = at(node);
        int length = block.getInt(KEY_BYTES_AT);
        long start = nextAt(block.getInt(LISTS_AT));
        int common = Math.min(length, key.length);
        int same = 0;
        while (same <= common - Long.BYTES
                && block.getLong(start + same) == (long) LONGS.get(key, same)) {
            same += Long.BYTES;
        }
        while (same < common && block.getByte(start + same) == key[same]) {
            same++;
        }
        return same < common
                ? Byte.compareUnsigned(block.getByte(start + same), key[same])
                : Integer.compare(length, key.length);
    }

    private static byte[] key(TransactionalMemoryBlock node) {
        byte[] key = new byte[node.getInt(KEY_BYTES_AT)];
        if (key.length > 0) {
            node.copyToArray(nextAt(node.getInt(LISTS_AT)), key, 0, key.length);
        }
        return key;
    }

    private static long nextAt(int list) {
        return NEXT_AT + (long) list * Long.BYTES;
    }

    private static long allocate(TransactionalHeap heap, int lists, byte[] key, long word) {
        return heap.allocateMemoryBlock(nextAt(lists) + key.length, range -> {
            range.setInt(KEY_BYTES_AT, key.length);
            range.setInt(LISTS_AT, lists);
            range.setLong(WORD_AT, word);
            if (key.length > 0) {
                range.copyFromArray(key, 0, nextAt(lists), key.length);
            }
        }).handle();
    }

    /** From key to key: each step looks for the next one that is there by then. */
    private final class NodeWalk implements Walk {
        private final boolean backwards;
        private Bounds rest;

        NodeWalk(Bounds bounds, boolean backwards) {
            this.rest = bounds;
            this.backwards = backwards;
        }

        @Override
        public <T> T next(Reader<T> reader) {
            if (rest == null) {
                return null;
            }
            try (ReadGuard guard = heap.readGuard()) {
                long node = step();
                byte[] key = node == 0 || node == head ? null : key(at(node));
                if (key == null || !rest.contain(key)) {
                    rest = null;
                    return null;
                }
                rest = backwards ? rest.upTo(key, false) : rest.from(key, false);
                return reader.read(key, at(node).getLongAcquire(WORD_AT));
            }
        }

        @Override
        public void close() {
            rest = null;
        }

        /** The next node; 0 or the head at the end. */
        private long step() {
            if (backwards) {
                return before(rest.upper, rest.upperInclusive, null);
            }
            long node = rest.lower == null
                    ? head : before(rest.lower, !rest.lowerInclusive, null);
            return at(node).getLongAcquire(NEXT_AT);
        }
    }
}
