package io.entresol.collections;

import io.entresol.heap.RadixTree;
import io.entresol.heap.ReadGuard;
import io.entresol.heap.Transaction;
import io.entresol.heap.TransactionalHeap;
import io.entresol.heap.TransactionalMemoryBlock;
import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Comparator;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableSet;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.function.Supplier;

/**
 * A sorted map in a transactional heap: an adaptive radix tree of encoded keys, a block for each
 * value. Every change is a transaction, or part of the thread's current one; nothing is kept in
 * Java. Keys and values are never null. Threads may share it; iterators show the moment they were
 * made at. The order is that of the encoded keys.
 */
public final class PersistentTreeMap<K, V> extends AbstractMap<K, V>
        implements ConcurrentNavigableMap<K, V> {
    private final TransactionalHeap heap;
    private final RadixTree tree;
    private final Codec<K> keys;
    private final Codec<V> values;
    private final Bounds bounds;
    private final boolean descending;

    private PersistentTreeMap(
            RadixTree tree, Codec<K> keys, Codec<V> values, Bounds bounds, boolean descending) {
        this.heap = (TransactionalHeap) tree.heap();
        this.tree = tree;
        this.keys = keys;
        this.values = values;
        this.bounds = bounds;
        this.descending = descending;
    }

    /** Makes an empty map. Its handle is to be stored where it will be found again. */
    public static <K, V> PersistentTreeMap<K, V> create(
            TransactionalHeap heap, Codec<K> keys, Codec<V> values) {
        return new PersistentTreeMap<>(RadixTree.create(heap), keys, values, Bounds.ALL, false);
    }

    /** The map of that handle, which was made with the same codecs. */
    public static <K, V> PersistentTreeMap<K, V> open(
            TransactionalHeap heap, long handle, Codec<K> keys, Codec<V> values) {
        RadixTree tree = RadixTree.open(heap, handle);
        return new PersistentTreeMap<>(tree, keys, values, Bounds.ALL, false);
    }

    /** The map's handle, the same after a restart. */
    public long handle() {
        return tree.handle();
    }

    /** Frees the map with all entries. */
    public void free() {
        Transaction.create(heap, () -> {
            clear();
            tree.free();
        });
    }

    @Override
    public int size() {
        if (bounds == Bounds.ALL) {
            return (int) Math.min(tree.size(), Integer.MAX_VALUE);
        }
        int count = 0;
        if (!bounds.isEmpty()) {
            try (RadixTree.Cursor cursor = range(bounds, false)) {
                while (cursor.next()) {
                    count++;
                }
            }
        }
        return count;
    }

    @Override
    public boolean isEmpty() {
        return edge(bounds, false) == null;
    }

    @Override
    public boolean containsKey(Object key) {
        byte[] encoded = encoded(key);
        return bounds.contain(encoded) && tree.contains(encoded);
    }

    @Override
    public V get(Object key) {
        byte[] encoded = encoded(key);
        if (!bounds.contain(encoded)) {
            return null;
        }
        try (ReadGuard guard = heap.readGuard()) {
            return read(tree.get(encoded, 0));
        }
    }

    @Override
    public V put(K key, V value) {
        byte[] encoded = inside(key);
        Objects.requireNonNull(value, "a value must not be null");
        return heap.execute((Supplier<V>) () -> store(encoded, value));
    }

    @Override
    public V remove(Object key) {
        byte[] encoded = encoded(key);
        if (!bounds.contain(encoded)) {
            return null;
        }
        return heap.execute((Supplier<V>) () -> release(tree.remove(encoded, 0)));
    }

    @Override
    public V putIfAbsent(K key, V value) {
        byte[] encoded = inside(key);
        Objects.requireNonNull(value, "a value must not be null");
        return held(encoded, () -> {
            V found = read(tree.get(encoded, 0));
            return found == null ? store(encoded, value) : found;
        });
    }

    @Override
    public boolean remove(Object key, Object value) {
        byte[] encoded = encoded(key);
        if (value == null || !bounds.contain(encoded)) {
            return false;
        }
        return held(encoded, () -> {
            boolean same = value.equals(read(tree.get(encoded, 0)));
            if (same) {
                release(tree.remove(encoded, 0));
            }
            return same;
        });
    }

    @Override
    public boolean replace(K key, V old, V value) {
        byte[] encoded = encoded(key);
        Objects.requireNonNull(old, "a value must not be null");
        Objects.requireNonNull(value, "a value must not be null");
        return bounds.contain(encoded) && held(encoded, () -> {
            boolean same = old.equals(read(tree.get(encoded, 0)));
            if (same) {
                store(encoded, value);
            }
            return same;
        });
    }

    @Override
    public V replace(K key, V value) {
        byte[] encoded = encoded(key);
        Objects.requireNonNull(value, "a value must not be null");
        return !bounds.contain(encoded) ? null : held(encoded, () ->
                tree.contains(encoded) ? store(encoded, value) : null);
    }

    @Override
    public void clear() {
        heap.execute(() -> {
            for (Iterator<Entry<K, V>> all = entrySet().iterator(); all.hasNext();) {
                all.next();
                all.remove();
            }
        });
    }

    /** By the encoded keys; null if that is the natural order, which it is for none here. */
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
    public NavigableSet<K> keySet() {
        return new KeySet<>(this);
    }

    @Override
    public NavigableSet<K> navigableKeySet() {
        return keySet();
    }

    @Override
    public NavigableSet<K> descendingKeySet() {
        return descendingMap().navigableKeySet();
    }

    @Override
    public Set<Entry<K, V>> entrySet() {
        return new AbstractSet<>() {
            @Override
            public Iterator<Entry<K, V>> iterator() {
                return new Entries();
            }

            @Override
            public int size() {
                return PersistentTreeMap.this.size();
            }

            @Override
            public boolean isEmpty() {
                return PersistentTreeMap.this.isEmpty();
            }

            @Override
            public boolean contains(Object entry) {
                return entry instanceof Entry
                        && Objects.equals(get(((Entry<?, ?>) entry).getKey()),
                                Objects.requireNonNullElse(
                                        ((Entry<?, ?>) entry).getValue(), this));
            }

            @Override
            public boolean remove(Object entry) {
                return entry instanceof Entry && PersistentTreeMap.this.remove(
                        ((Entry<?, ?>) entry).getKey(), ((Entry<?, ?>) entry).getValue());
            }
        };
    }

    private PersistentTreeMap<K, V> view(Bounds part, boolean backwards) {
        return new PersistentTreeMap<>(tree, keys, values, part, backwards);
    }

    private PersistentTreeMap<K, V> part(byte[] key, boolean inclusive, boolean tail) {
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
        if (part.isEmpty()) {
            return null;
        }
        try (RadixTree.Cursor cursor = range(part, backwards)) {
            return cursor.next() ? entry(cursor) : null;
        }
    }

    private Entry<K, V> poll(boolean backwards) {
        return heap.execute((Supplier<Entry<K, V>>) () -> {
            while (true) {
                Entry<K, V> entry = edge(bounds, backwards);
                if (entry == null) {
                    return null;
                }
                V value = remove(entry.getKey());
                if (value != null) {
                    return new SimpleImmutableEntry<>(entry.getKey(), value);
                }
            }
        });
    }

    private RadixTree.Cursor range(Bounds part, boolean backwards) {
        return tree.range(part.lower, part.lowerInclusive, part.upper, part.upperInclusive,
                backwards);
    }

    private Entry<K, V> entry(RadixTree.Cursor cursor) {
        return new SimpleImmutableEntry<>(keys.decode(cursor.key()), read(cursor.value()));
    }

    /** Runs {@code body} with the map held, so that what it reads stays until its end. */
    private <T> T held(byte[] key, Supplier<T> body) {
        return heap.execute((Supplier<T>) () -> {
            tree.hold(key);
            return body.get();
        });
    }

    private V store(byte[] key, V value) {
        byte[] bytes = values.encode(value);
        long block = heap.allocateMemoryBlock(Integer.BYTES + bytes.length, range -> {
            range.setInt(0, bytes.length);
            if (bytes.length > 0) {
                range.copyFromArray(bytes, 0, Integer.BYTES, bytes.length);
            }
        }).handle();
        return release(tree.put(key, block, 0));
    }

    private V release(long block) {
        V value = read(block);
        if (block != 0) {
            heap.memoryBlockFromHandle(block).free();
        }
        return value;
    }

    /** The value in a block; null if there is none. */
    private V read(long block) {
        if (block == 0) {
            return null;
        }
        TransactionalMemoryBlock found = heap.memoryBlockFromHandle(block);
        byte[] bytes = new byte[found.getInt(0)];
        if (bytes.length > 0) {
            found.copyToArray(Integer.BYTES, bytes, 0, bytes.length);
        }
        return values.decode(bytes);
    }

    @SuppressWarnings("unchecked")
    private byte[] encoded(Object key) {
        // A key of another class is a ClassCastException of the codec, as the interface has it.
        return keys.encode((K) Objects.requireNonNull(key, "a key must not be null"));
    }

    private byte[] inside(K key) {
        byte[] encoded = encoded(key);
        if (!bounds.contain(encoded)) {
            throw new IllegalArgumentException("the key lies outside this part of the map");
        }
        return encoded;
    }

    private static <T> T required(T entry) {
        if (entry == null) {
            throw new NoSuchElementException("the map is empty");
        }
        return entry;
    }

    private static <K> K keyOf(Entry<K, ?> entry) {
        return entry == null ? null : entry.getKey();
    }

    /** The entries of one moment. */
    private final class Entries implements Iterator<Entry<K, V>> {
        private final RadixTree.Cursor cursor = bounds.isEmpty() ? null : range(bounds, descending);
        private Entry<K, V> next = read();
        private K last;

        @Override
        public boolean hasNext() {
            return next != null;
        }

        @Override
        public Entry<K, V> next() {
            Entry<K, V> entry = required(next);
            last = entry.getKey();
            next = read();
            K key = last;
            return new SimpleEntry<>(entry) {
                private static final long serialVersionUID = 1L;

                @Override
                public V setValue(V value) {
                    put(key, value);
                    return super.setValue(value);
                }
            };
        }

        @Override
        public void remove() {
            if (last == null) {
                throw new IllegalStateException("no entry to remove");
            }
            PersistentTreeMap.this.remove(last);
            last = null;
        }

        private Entry<K, V> read() {
            return cursor != null && cursor.next() ? entry(cursor) : null;
        }
    }

    /** The keys of a map, as a view of it. */
    private static final class KeySet<K> extends AbstractSet<K> implements NavigableSet<K> {
        private final ConcurrentNavigableMap<K, ?> map;

        KeySet(ConcurrentNavigableMap<K, ?> map) {
            this.map = map;
        }

        @Override
        public Iterator<K> iterator() {
            Iterator<? extends Map.Entry<K, ?>> entries = map.entrySet().iterator();
            return new Iterator<>() {
                @Override
                public boolean hasNext() {
                    return entries.hasNext();
                }

                @Override
                public K next() {
                    return entries.next().getKey();
                }

                @Override
                public void remove() {
                    entries.remove();
                }
            };
        }

        @Override
        public Iterator<K> descendingIterator() {
            return descendingSet().iterator();
        }

        @Override
        public int size() {
            return map.size();
        }

        @Override
        public boolean isEmpty() {
            return map.isEmpty();
        }

        @Override
        public boolean contains(Object key) {
            return map.containsKey(key);
        }

        @Override
        public boolean remove(Object key) {
            return map.remove(key) != null;
        }

        @Override
        public void clear() {
            map.clear();
        }

        @Override
        public Comparator<? super K> comparator() {
            return map.comparator();
        }

        @Override
        public K first() {
            return map.firstKey();
        }

        @Override
        public K last() {
            return map.lastKey();
        }

        @Override
        public K lower(K key) {
            return map.lowerKey(key);
        }

        @Override
        public K floor(K key) {
            return map.floorKey(key);
        }

        @Override
        public K ceiling(K key) {
            return map.ceilingKey(key);
        }

        @Override
        public K higher(K key) {
            return map.higherKey(key);
        }

        @Override
        public K pollFirst() {
            return keyOf(map.pollFirstEntry());
        }

        @Override
        public K pollLast() {
            return keyOf(map.pollLastEntry());
        }

        @Override
        public NavigableSet<K> descendingSet() {
            return map.descendingKeySet();
        }

        @Override
        public NavigableSet<K> subSet(K from, boolean fromInclusive, K to, boolean toInclusive) {
            return map.subMap(from, fromInclusive, to, toInclusive).navigableKeySet();
        }

        @Override
        public NavigableSet<K> headSet(K to, boolean inclusive) {
            return map.headMap(to, inclusive).navigableKeySet();
        }

        @Override
        public NavigableSet<K> tailSet(K from, boolean inclusive) {
            return map.tailMap(from, inclusive).navigableKeySet();
        }

        @Override
        public NavigableSet<K> subSet(K from, K to) {
            return subSet(from, true, to, false);
        }

        @Override
        public NavigableSet<K> headSet(K to) {
            return headSet(to, false);
        }

        @Override
        public NavigableSet<K> tailSet(K from) {
            return tailSet(from, true);
        }
    }
}
