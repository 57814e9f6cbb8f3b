package io.entresol.collections;

import io.entresol.collections.internal.blocks.Entries;
import io.entresol.collections.internal.blocks.RadixEntries;

/**
 * A sorted map in a heap: an adaptive radix tree of encoded keys, a block for each value. Every
 * method is a transaction or part of the thread's current one. Threads may share it; iterators show
 * the moment of their creation, but persistent objects in it as they are when the iterator reaches
 * them. The order is that of the encoded keys.
 */
public final class PersistentTreeMap<K, V> extends PersistentSortedMap<K, V> {
    /** What heaps know of the class. */
    static final ObjectType<PersistentTreeMap<?, ?>> TYPE =
            type(PersistentTreeMap.class, PersistentTreeMap::new);

    private PersistentTreeMap(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty map. */
    public static <K, V> PersistentTreeMap<K, V> create(
            ObjectHeap objects, Codec<K> keys, Codec<V> values) {
        return make(TYPE, objects, RadixEntries::empty, keys, values);
    }

    /** The map of that handle, which was made with the same codecs. */
    public static <K, V> PersistentTreeMap<K, V> open(
            ObjectHeap objects, long handle, Codec<K> keys, Codec<V> values) {
        return open(TYPE, objects, handle, keys, values);
    }

    @Override
    Entries entries() {
        return RadixEntries.open(objects().heap(), block());
    }
}
