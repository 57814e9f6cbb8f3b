package io.entresol.collections;

import io.entresol.collections.internal.blocks.Entries;
import io.entresol.collections.internal.blocks.HashedEntries;
import io.entresol.collections.internal.blocks.Values;
import io.entresol.collections.internal.views.EntryMap;

/**
 * A map in a heap that finds keys by a hash of their bytes. Every method is a transaction or part
 * of the thread's current one. Threads may share it; iterators show the moment of their creation,
 * but persistent objects in it as they are when the iterator reaches them. Null is a key or a value
 * if the codec allows it.
 */
public final class PersistentHashMap<K, V> extends PersistentMap<K, V> {
    /** What heaps know of the class. */
    static final ObjectType<PersistentHashMap<?, ?>> TYPE =
            type(PersistentHashMap.class, PersistentHashMap::new);

    private PersistentHashMap(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty map. */
    public static <K, V> PersistentHashMap<K, V> create(
            ObjectHeap objects, Codec<K> keys, Codec<V> values) {
        return make(TYPE, objects, HashedEntries::empty, keys, values);
    }

    /** The map of that handle, which was made with the same codecs. */
    public static <K, V> PersistentHashMap<K, V> open(
            ObjectHeap objects, long handle, Codec<K> keys, Codec<V> values) {
        return open(TYPE, objects, handle, keys, values);
    }

    @Override
    Entries entries() {
        return HashedEntries.open(objects().heap(), block());
    }

    @Override
    EntryMap<K, V> view(Entries entries, Codec<K> keys, Values<V> values) {
        return new EntryMap<>(owner(), entries, keys, values);
    }
}
