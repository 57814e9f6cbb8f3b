package com.intel.pmem.llpl.util;

import com.intel.pmem.llpl.AnyHeap;
import java.util.function.BiFunction;
import java.util.function.Consumer;

/**
 * A {@link LongART} that several threads may use: readers run beside each other and beside one
 * writer. If a transaction has changed the map, other transactions wait with their changes until it
 * ends. Iterators show the moment of their creation and hold no lock.
 */
public final class ConcurrentLongART {
    private final LongART map;

    /** Makes an empty map; how many threads will use it at once makes no difference here. */
    public ConcurrentLongART(AnyHeap heap, int concurrencyLevel) {
        if (concurrencyLevel <= 0) {
            throw new IllegalArgumentException("a concurrency level of " + concurrencyLevel);
        }
        map = new LongART(heap);
    }

    private ConcurrentLongART(LongART map) {
        this.map = map;
    }

    /** The map of that handle. */
    public static ConcurrentLongART fromHandle(AnyHeap heap, long handle) {
        return new ConcurrentLongART(LongART.fromHandle(heap, handle));
    }

    /** The map's handle, the same after a restart. */
    public long handle() {
        return map.handle();
    }

    /** Number of entries. */
    public long size() {
        return map.size();
    }

    /** As {@link LongART#put(byte[], long)}. */
    public long put(byte[] key, long value) {
        return map.put(key, value);
    }

    /** As {@link LongART#put(byte[], Object, BiFunction)}. */
    public long put(byte[] key, Object value, BiFunction<Object, Long, Long> merge) {
        return map.put(key, value, merge);
    }

    /** As {@link LongART#get}. */
    public long get(byte[] key) {
        return map.get(key);
    }

    /** As {@link LongART#remove}. */
    public long remove(byte[] key, Consumer<Long> cleaner) {
        return map.remove(key, cleaner);
    }

    /** As {@link LongART#firstKey}. */
    public byte[] firstKey() {
        return map.firstKey();
    }

    /** As {@link LongART#lastKey}. */
    public byte[] lastKey() {
        return map.lastKey();
    }

    /** As {@link LongART#clear}. */
    public void clear(Consumer<Long> cleaner) {
        map.clear(cleaner);
    }

    /** As {@link LongART#free}. */
    public void free() {
        map.free();
    }

    /** As {@link LongART#getEntryIterator()}. */
    public AutoCloseableIterator<LongART.Entry> getEntryIterator() {
        return (LongART.Entries) map.getEntryIterator();
    }

    /** As {@link LongART#getEntryIterator(byte[], boolean, byte[], boolean)}. */
    public AutoCloseableIterator<LongART.Entry> getEntryIterator(
            byte[] first, boolean firstInclusive, byte[] last, boolean lastInclusive) {
        return (LongART.Entries)
                map.getEntryIterator(first, firstInclusive, last, lastInclusive);
    }

    /** As {@link LongART#getHeadEntryIterator}. */
    public AutoCloseableIterator<LongART.Entry> getHeadEntryIterator(
            byte[] last, boolean lastInclusive) {
        return (LongART.Entries) map.getHeadEntryIterator(last, lastInclusive);
    }

    /** As {@link LongART#getTailEntryIterator}. */
    public AutoCloseableIterator<LongART.Entry> getTailEntryIterator(
            byte[] first, boolean firstInclusive) {
        return (LongART.Entries) map.getTailEntryIterator(first, firstInclusive);
    }

    /** As {@link LongART#getReverseEntryIterator()}. */
    public AutoCloseableIterator<LongART.Entry> getReverseEntryIterator() {
        return (LongART.Entries) map.getReverseEntryIterator();
    }

    /** As {@link LongART#getReverseEntryIterator(byte[], boolean, byte[], boolean)}. */
    public AutoCloseableIterator<LongART.Entry> getReverseEntryIterator(
            byte[] first, boolean firstInclusive, byte[] last, boolean lastInclusive) {
        return (LongART.Entries)
                map.getReverseEntryIterator(first, firstInclusive, last, lastInclusive);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ConcurrentLongART
                && map.equals(((ConcurrentLongART) other).map);
    }

    @Override
    public int hashCode() {
        return map.hashCode();
    }
}
