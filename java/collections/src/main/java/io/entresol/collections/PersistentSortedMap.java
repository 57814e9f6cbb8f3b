package io.entresol.collections;

import io.entresol.collections.internal.blocks.Entries;
import io.entresol.collections.internal.blocks.Values;
import io.entresol.collections.internal.views.SortedView;
import java.util.Comparator;
import java.util.NavigableSet;
import java.util.concurrent.ConcurrentNavigableMap;

/** The common part of sorted maps in a heap. The order is that of encoded keys. */
public abstract class PersistentSortedMap<K, V> extends PersistentMap<K, V>
        implements ConcurrentNavigableMap<K, V> {
    PersistentSortedMap(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    @Override
    SortedView<K, V> view(Entries entries, Codec<K> keys, Values<V> values) {
        return new SortedView<>(owner(), entries, keys, values);
    }

    @Override
    SortedView<K, V> view() {
        return contents();
    }

    @Override
    public Comparator<? super K> comparator() {
        return view().comparator();
    }

    @Override
    public K firstKey() {
        return view().firstKey();
    }

    @Override
    public K lastKey() {
        return view().lastKey();
    }

    @Override
    public Entry<K, V> firstEntry() {
        return view().firstEntry();
    }

    @Override
    public Entry<K, V> lastEntry() {
        return view().lastEntry();
    }

    @Override
    public Entry<K, V> pollFirstEntry() {
        return view().pollFirstEntry();
    }

    @Override
    public Entry<K, V> pollLastEntry() {
        return view().pollLastEntry();
    }

    @Override
    public Entry<K, V> lowerEntry(K key) {
        return view().lowerEntry(key);
    }

    @Override
    public Entry<K, V> floorEntry(K key) {
        return view().floorEntry(key);
    }

    @Override
    public Entry<K, V> ceilingEntry(K key) {
        return view().ceilingEntry(key);
    }

    @Override
    public Entry<K, V> higherEntry(K key) {
        return view().higherEntry(key);
    }

    @Override
    public K lowerKey(K key) {
        return view().lowerKey(key);
    }

    @Override
    public K floorKey(K key) {
        return view().floorKey(key);
    }

    @Override
    public K ceilingKey(K key) {
        return view().ceilingKey(key);
    }

    @Override
    public K higherKey(K key) {
        return view().higherKey(key);
    }

    @Override
    public ConcurrentNavigableMap<K, V> descendingMap() {
        return view().descendingMap();
    }

    @Override
    public ConcurrentNavigableMap<K, V> subMap(
            K from, boolean fromInclusive, K to, boolean toInclusive) {
        return view().subMap(from, fromInclusive, to, toInclusive);
    }

    @Override
    public ConcurrentNavigableMap<K, V> headMap(K to, boolean inclusive) {
        return view().headMap(to, inclusive);
    }

    @Override
    public ConcurrentNavigableMap<K, V> tailMap(K from, boolean inclusive) {
        return view().tailMap(from, inclusive);
    }

    @Override
    public ConcurrentNavigableMap<K, V> subMap(K from, K to) {
        return view().subMap(from, to);
    }

    @Override
    public ConcurrentNavigableMap<K, V> headMap(K to) {
        return view().headMap(to);
    }

    @Override
    public ConcurrentNavigableMap<K, V> tailMap(K from) {
        return view().tailMap(from);
    }

    @Override
    public NavigableSet<K> keySet() {
        return view().keySet();
    }

    @Override
    public NavigableSet<K> navigableKeySet() {
        return view().navigableKeySet();
    }

    @Override
    public NavigableSet<K> descendingKeySet() {
        return view().descendingKeySet();
    }
}
