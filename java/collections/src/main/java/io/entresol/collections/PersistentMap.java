package io.entresol.collections;

import io.entresol.collections.internal.blocks.Cells;
import io.entresol.collections.internal.blocks.Entries;
import io.entresol.collections.internal.blocks.Values;
import io.entresol.collections.internal.views.Contents;
import io.entresol.collections.internal.views.EntryMap;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentMap;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Function;

/** The common part of maps in a heap. Equal maps have equal entries. */
public abstract class PersistentMap<K, V> extends CodedObject implements ConcurrentMap<K, V> {
    PersistentMap(ObjectHeap objects, long handle) {
        super(objects, handle, 2);
    }

    /** The map's entries, on the object's block. */
    abstract Entries entries();

    /** What shows entries as a map. */
    abstract EntryMap<K, V> view(Entries entries, Codec<K> keys, Values<V> values);

    /** The entries, with all methods of their kind; refused if the object was undone. */
    EntryMap<K, V> view() {
        return contents();
    }

    @Override
    final Contents read() {
        Codec<K> keys = codec(0);
        Codec<V> values = codec(1);
        return view(entries(), keys, new Cells<>(objects().heap(), values));
    }

    @Override
    public int size() {
        return view().size();
    }

    @Override
    public boolean isEmpty() {
        return view().isEmpty();
    }

    @Override
    public boolean containsKey(Object key) {
        return view().containsKey(key);
    }

    @Override
    public boolean containsValue(Object value) {
        return view().containsValue(value);
    }

    @Override
    public V get(Object key) {
        return view().get(key);
    }

    @Override
    public V getOrDefault(Object key, V absent) {
        return view().getOrDefault(key, absent);
    }

    @Override
    public V put(K key, V value) {
        return view().put(key, value);
    }

    @Override
    public void putAll(Map<? extends K, ? extends V> others) {
        view().putAll(others);
    }

    @Override
    public V putIfAbsent(K key, V value) {
        return view().putIfAbsent(key, value);
    }

    @Override
    public V remove(Object key) {
        return view().remove(key);
    }

    @Override
    public boolean remove(Object key, Object value) {
        return view().remove(key, value);
    }

    @Override
    public boolean replace(K key, V old, V value) {
        return view().replace(key, old, value);
    }

    @Override
    public V replace(K key, V value) {
        return view().replace(key, value);
    }

    @Override
    public void replaceAll(BiFunction<? super K, ? super V, ? extends V> function) {
        view().replaceAll(function);
    }

    @Override
    public V computeIfAbsent(K key, Function<? super K, ? extends V> function) {
        return view().computeIfAbsent(key, function);
    }

    @Override
    public V computeIfPresent(
            K key, BiFunction<? super K, ? super V, ? extends V> function) {
        return view().computeIfPresent(key, function);
    }

    @Override
    public V compute(K key, BiFunction<? super K, ? super V, ? extends V> function) {
        return view().compute(key, function);
    }

    @Override
    public V merge(
            K key, V value, BiFunction<? super V, ? super V, ? extends V> function) {
        return view().merge(key, value, function);
    }

    @Override
    public void forEach(BiConsumer<? super K, ? super V> action) {
        view().forEach(action);
    }

    @Override
    public void clear() {
        view().clear();
    }

    @Override
    public Set<K> keySet() {
        return view().keySet();
    }

    @Override
    public Collection<V> values() {
        return view().values();
    }

    @Override
    public Set<Entry<K, V>> entrySet() {
        return view().entrySet();
    }

    @Override
    public boolean equals(Object other) {
        return other == this || view().equals(other);
    }

    @Override
    public int hashCode() {
        return view().hashCode();
    }

    @Override
    public String toString() {
        return view().toString();
    }
}
