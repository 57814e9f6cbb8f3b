package com.intel.pmem.llpl.util;

import com.intel.pmem.llpl.AnyHeap;
import com.intel.pmem.llpl.RadixTree;
import com.intel.pmem.llpl.Transaction;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.function.BiFunction;
import java.util.function.Consumer;

/**
 * A persistent ordered map from byte strings, which are not empty, to longs: an adaptive radix
 * tree. Every change is a transaction, or part of the current one, in heaps of every kind. Methods
 * return 0 for an absent key, but 0 can also be a value. Iterators show the moment of their
 * creation. Not thread-safe; {@link ConcurrentLongART} is.
 */
public final class LongART {
    private final RadixTree tree;

    /** Makes an empty map. */
    public LongART(AnyHeap heap) {
        this(RadixTree.create(heap));
    }

    private LongART(RadixTree tree) {
        this.tree = tree;
    }

    /** The map of that handle. */
    public static LongART fromHandle(AnyHeap heap, long handle) {
        return new LongART(RadixTree.open(heap, handle));
    }

    /** The map's handle, the same after a restart. */
    public long handle() {
        return tree.handle();
    }

    /** Number of entries. */
    public long size() {
        return tree.size();
    }

    /** Gives {@code key} a value; the one before, or 0. */
    public long put(byte[] key, long value) {
        return tree.put(required(key), value, 0);
    }

    /** Gives {@code key} what {@code merge} makes of {@code value} and the old one, or 0. */
    public long put(byte[] key, Object value, BiFunction<Object, Long, Long> merge) {
        required(key);
        return Transaction.create(tree.heap(), () -> {
            tree.hold();
            long old = tree.get(key, 0);
            tree.put(key, merge.apply(value, old), 0);
            return old;
        });
    }

    /** The value of {@code key}, or 0. */
    public long get(byte[] key) {
        return tree.get(required(key), 0);
    }

    /** Removes {@code key}, whose value {@code cleaner} gets before; the value, or 0. */
    public long remove(byte[] key, Consumer<Long> cleaner) {
        Objects.requireNonNull(key, "a key must not be null");
        Objects.requireNonNull(cleaner, "the cleaner of values must not be null");
        required(key);
        return Transaction.create(tree.heap(), () -> {
            tree.hold();
            if (!tree.contains(key)) {
                return 0L;
            }
            long value = tree.get(key, 0);
            cleaner.accept(value);
            tree.remove(key, 0);
            return value;
        });
    }

    /** The first key. */
    public byte[] firstKey() {
        return edge(false);
    }

    /** The last key. */
    public byte[] lastKey() {
        return edge(true);
    }

    /** Removes all entries, whose values {@code cleaner} gets before. */
    public void clear(Consumer<Long> cleaner) {
        if (cleaner == null) {
            throw new IllegalArgumentException("the cleaner of values must not be null");
        }
        Transaction.create(tree.heap(), () -> {
            // No other transaction adds a value that nobody cleans.
            tree.hold();
            values().forEach(cleaner);
            tree.clear();
        });
    }

    /** Frees the map, entries included. */
    public void free() {
        tree.free();
    }

    /** The values in the order of their keys. */
    public Iterator<Long> getValueIterator() {
        Iterator<Entry> entries = getEntryIterator();
        return new Iterator<Long>() {
            @Override
            public boolean hasNext() {
                return entries.hasNext();
            }

            @Override
            public Long next() {
                return entries.next().getValue();
            }
        };
    }

    /** All entries in order. */
    public Iterator<Entry> getEntryIterator() {
        return new Entries(tree.range(null, false, null, false, false));
    }

    /** The entries between two keys in order. */
    public Iterator<Entry> getEntryIterator(
            byte[] first, boolean firstInclusive, byte[] last, boolean lastInclusive) {
        return between(first, firstInclusive, last, lastInclusive, false);
    }

    /** The entries up to a key in order. */
    public Iterator<Entry> getHeadEntryIterator(byte[] last, boolean lastInclusive) {
        return new Entries(tree.range(null, false, required(last), lastInclusive, false));
    }

    /** The entries from a key on in order. */
    public Iterator<Entry> getTailEntryIterator(byte[] first, boolean firstInclusive) {
        return new Entries(tree.range(required(first), firstInclusive, null, false, false));
    }

    /** All entries, the last one first. */
    public Iterator<Entry> getReverseEntryIterator() {
        return new Entries(tree.range(null, false, null, false, true));
    }

    /** The entries between two keys, the last one first. */
    public Iterator<Entry> getReverseEntryIterator(
            byte[] first, boolean firstInclusive, byte[] last, boolean lastInclusive) {
        return between(first, firstInclusive, last, lastInclusive, true);
    }

    /** The entries up to a key, the last one first. */
    public Iterator<Entry> getReverseHeadEntryIterator(byte[] last, boolean lastInclusive) {
        return new Entries(tree.range(null, false, required(last), lastInclusive, true));
    }

    /** The entries from a key on, the last one first. */
    public Iterator<Entry> getReverseTailEntryIterator(byte[] first, boolean firstInclusive) {
        return new Entries(tree.range(required(first), firstInclusive, null, false, true));
    }

    /** Moves the upper half of the entries to a new map; null if this one is empty. */
    public LongART split() {
        RadixTree other = tree.split();
        return other == null ? null : new LongART(other);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof LongART && tree.equals(((LongART) other).tree);
    }

    @Override
    public int hashCode() {
        return tree.hashCode();
    }

    private Iterator<Entry> between(byte[] first, boolean firstInclusive, byte[] last,
            boolean lastInclusive, boolean backwards) {
        if (java.util.Arrays.compareUnsigned(required(first), required(last)) > 0) {
            throw new IllegalArgumentException("the first key is greater than the last one");
        }
        return new Entries(tree.range(first, firstInclusive, last, lastInclusive, backwards));
    }

    private byte[] edge(boolean last) {
        try (RadixTree.Cursor cursor = tree.range(null, false, null, false, last)) {
            if (!cursor.next()) {
                throw new NoSuchElementException("the map is empty");
            }
            return cursor.key();
        }
    }

    private List<Long> values() {
        List<Long> values = new ArrayList<>();
        try (RadixTree.Cursor cursor = tree.entries()) {
            while (cursor.next()) {
                values.add(cursor.value());
            }
        }
        return values;
    }

    private static byte[] required(byte[] key) {
        if (key == null || key.length == 0) {
            throw new IllegalArgumentException("a key must not be null or empty");
        }
        return key;
    }

    /** A key and its value, as they were when the iterator was made. */
    public static final class Entry {
        private final byte[] key;
        private final long value;

        Entry(byte[] key, long value) {
            this.key = key;
            this.value = value;
        }

        /** The key. */
        public byte[] getKey() {
            return key;
        }

        /** The value. */
        public long getValue() {
            return value;
        }
    }

    /** Entries of a cursor. */
    static final class Entries implements AutoCloseableIterator<Entry> {
        private final RadixTree.Cursor cursor;
        private boolean read;
        private boolean more;

        Entries(RadixTree.Cursor cursor) {
            this.cursor = cursor;
        }

        @Override
        public boolean hasNext() {
            if (!read) {
                more = cursor.next();
                read = true;
            }
            return more;
        }

        @Override
        public Entry next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            read = false;
            return new Entry(cursor.key(), cursor.value());
        }

        @Override
        public void close() {
            read = true;
            more = false;
            cursor.close();
        }
    }
}
