package io.entresol.collections.internal.views;

import java.util.Comparator;
import java.util.Iterator;
import java.util.NavigableSet;
import java.util.Spliterator;

/** The keys of a sorted map, or of a part of one, as a view of it; a set can add keys. */
public final class SortedKeys<K> extends EntryMap.Keys<K> implements NavigableSet<K> {
    private final SortedView<K, ?> map;

    SortedKeys(SortedView<K, ?> map) {
        super(map);
        this.map = map;
    }

    @Override
    public Spliterator<K> spliterator() {
        return new ViewSpliterator<>(iterator(), comparator());
    }

    @Override
    public Iterator<K> descendingIterator() {
        return descendingSet().iterator();
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
        return SortedView.keyOf(map.pollFirstEntry());
    }

    @Override
    public K pollLast() {
        return SortedView.keyOf(map.pollLastEntry());
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
