package io.entresol.collections.internal.views;

import io.entresol.collections.Codec;
import io.entresol.collections.internal.blocks.Bounds;
import io.entresol.collections.internal.blocks.Entries;
import io.entresol.collections.internal.blocks.Values;
import java.util.Comparator;
import java.util.Iterator;
import java.util.NavigableSet;
import java.util.Spliterator;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.function.Supplier;

/** A sorted map, or a part of one, forwards or backwards. The order is that of encoded keys. */
public final class SortedView<K, V> extends EntryMap<K, V> implements ConcurrentNavigableMap<K, V> {
    private final Bounds bounds;
    private final boolean descending;

    /** All of {@code entries}. */
    public SortedView(Owner owner, Entries entries, Codec<K> keys, Values<V> values) {
        this(owner, entries, keys, values, Bounds.ALL, false);
    }

    private SortedView(Owner owner, Entries entries, Codec<K> keys, Values<V> values,
            Bounds bounds, boolean descending) {
        super(owner, entries, keys, values);
        this.bounds = bounds;
        this.descending = descending;
    }

    @Override
    int order() {
        return Spliterator.ORDERED;
    }

    @Override
    boolean admits(byte[] key) {
        return bounds.contain(key);
    }

    @Override
    Entries.Walk walk() {
        owner.requireMade();
        return entries.walk(bounds, descending);
    }

    @Override
    public int size() {
        if (bounds == Bounds.ALL) {
            return super.size();
        }
        int count = 0;
        try (Entries.Walk walk = walk()) {
            while (walk.next((key, word) -> key) != null) {
                count++;
            }
        }
        return count;
    }

    @Override
    public boolean isEmpty() {
        // The count of all waits for nobody.
        return bounds == Bounds.ALL ? super.isEmpty() : edge(bounds, false) == null;
    }

    @Override
    public void clear() {
        if (bounds == Bounds.ALL) {
            super.clear();
            return;
        }
        objects.run(() -> {
            for (Iterator<K> all = keySet().iterator(); all.hasNext();) {
                all.next();
                all.remove();
            }
        });
    }

    /** By the encoded keys; never null, as the natural order of keys is not asked. */
    @Override
    public Comparator<? super K> comparator() {
        Comparator<K> order =
                (left, right) -> Bounds.compare(keys.encode(left), keys.encode(right));
        return descending ? order.reversed() : order;
    }

    @Override
    public K firstKey() {
        return required(firstEntry()).getKey();
    }

    @Override
    public K lastKey() {
        return required(lastEntry()).getKey();
    }

    @Override
    public Entry<K, V> firstEntry() {
        return edge(bounds, descending);
    }

    @Override
    public Entry<K, V> lastEntry() {
        return edge(bounds, !descending);
    }

    @Override
    public Entry<K, V> pollFirstEntry() {
        return poll(descending);
    }

    @Override
    public Entry<K, V> pollLastEntry() {
        return poll(!descending);
    }

    @Override
    public Entry<K, V> lowerEntry(K key) {
        return near(key, false, true);
    }

    @Override
    public Entry<K, V> floorEntry(K key) {
        return near(key, true, true);
    }

    @Override
    public Entry<K, V> ceilingEntry(K key) {
        return near(key, true, false);
    }

    @Override
    public Entry<K, V> higherEntry(K key) {
        return near(key, false, false);
    }

    @Override
    public K lowerKey(K key) {
        return keyOf(lowerEntry(key));
    }

    @Override
    public K floorKey(K key) {
        return keyOf(floorEntry(key));
    }

    @Override
    public K ceilingKey(K key) {
        return keyOf(ceilingEntry(key));
    }

    @Override
    public K higherKey(K key) {
        return keyOf(higherEntry(key));
    }

    @Override
    public ConcurrentNavigableMap<K, V> descendingMap() {
        return view(bounds, !descending);
    }

    @Override
    public ConcurrentNavigableMap<K, V> subMap(
            K from, boolean fromInclusive, K to, boolean toInclusive) {
        byte[] first = encoded(from);
        byte[] last = encoded(to);
        if (Bounds.compare(first, last) * (descending ? -1 : 1) > 0) {
            throw new IllegalArgumentException("the first key comes after the last one");
        }
        requireAdmitted(first, fromInclusive);
        requireAdmitted(last, toInclusive);
        return part(first, fromInclusive, true).part(last, toInclusive, false);
    }

    @Override
    public ConcurrentNavigableMap<K, V> headMap(K to, boolean inclusive) {
        byte[] last = encoded(to);
        requireAdmitted(last, inclusive);
        return part(last, inclusive, false);
    }

    @Override
    public ConcurrentNavigableMap<K, V> tailMap(K from, boolean inclusive) {
        byte[] first = encoded(from);
        requireAdmitted(first, inclusive);
        return part(first, inclusive, true);
    }

    @Override
    public ConcurrentNavigableMap<K, V> subMap(K from, K to) {
        return subMap(from, true, to, false);
    }

    @Override
    public ConcurrentNavigableMap<K, V> headMap(K to) {
        return headMap(to, false);
    }

    @Override
    public ConcurrentNavigableMap<K, V> tailMap(K from) {
        return tailMap(from, true);
    }

    @Override
    public SortedKeys<K> keySet() {
        return new SortedKeys<>(this);
    }

    @Override
    public NavigableSet<K> navigableKeySet() {
        return keySet();
    }

    @Override
    public NavigableSet<K> descendingKeySet() {
        return descendingMap().navigableKeySet();
    }

    static <K> K keyOf(Entry<K, ?> entry) {
        return entry == null ? null : entry.getKey();
    }

    private SortedView<K, V> view(Bounds part, boolean backwards) {
        return new SortedView<>(owner, entries, keys, values, part, backwards);
    }

    private SortedView<K, V> part(byte[] key, boolean inclusive, boolean tail) {
        return view(tail != descending
                ? bounds.from(key, inclusive) : bounds.upTo(key, inclusive), descending);
    }

    private void requireAdmitted(byte[] key, boolean inclusive) {
        if (!bounds.admit(key, inclusive)) {
            throw new IllegalArgumentException("the key lies outside this part of the map");
        }
    }

    private Entry<K, V> near(K key, boolean inclusive, boolean before) {
        byte[] encoded = encoded(key);
        boolean backwards = before != descending;
        Bounds side = backwards
                ? bounds.upTo(encoded, inclusive) : bounds.from(encoded, inclusive);
        return edge(side, backwards);
    }

    private Entry<K, V> edge(Bounds part, boolean backwards) {
        owner.requireMade();
        try (Entries.Walk walk = entries.walk(part, backwards)) {
            return next(walk);
        }
    }

    private Entry<K, V> poll(boolean backwards) {
        return objects.run((Supplier<Entry<K, V>>) () -> {
            Entry<K, V> taken = null;
            Entry<K, V> edge = edge(bounds, backwards);
            while (edge != null && (taken = take(edge.getKey())) == null) {
                edge = edge(bounds, backwards);
            }
            return taken;
        });
    }
}
