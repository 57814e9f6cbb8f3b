package io.entresol.collections;

import io.entresol.heap.RadixTree;

/**
 * A sorted map in a heap: an adaptive radix tree of encoded keys, a block for each value. Every
 * method is a transaction or part of the thread's current one. Threads may share it; iterators show
 * the moment they were made at, except that entries which lead to persistent objects show as they
 * are by then. The order is that of the encoded keys.
 */
public final class PersistentTreeMap<K, V> extends PersistentSortedMap<K, V> {
    /** What heaps know of the class. */
    @SuppressWarnings("unchecked")
    static final ObjectType<PersistentTreeMap<?, ?>> TYPE = ObjectType.of(
            (Class<PersistentTreeMap<?, ?>>) (Class<?>) PersistentTreeMap.class,
            Header.FIELDS, PersistentTreeMap::new);

    private PersistentTreeMap(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty map. */
    @SuppressWarnings("unchecked")
    public static <K, V> PersistentTreeMap<K, V> create(
            ObjectHeap objects, Codec<K> keys, Codec<V> values) {
        return objects.run(() -> {
            long root = RadixTree.create(objects.heap()).handle();
            return (PersistentTreeMap<K, V>) make(TYPE, objects,
                    range -> range.setLong(Header.ROOT_AT, root), keys, values);
        });
    }

    /** The map of that handle, which was made with the same codecs. */
    @SuppressWarnings("unchecked")
    public static <K, V> PersistentTreeMap<K, V> open(
            ObjectHeap objects, long handle, Codec<K> keys, Codec<V> values) {
        return (PersistentTreeMap<K, V>) open(TYPE.type(), objects, handle, keys, values);
    }

    @Override
    Entries entries() {
        return new RadixEntries(RadixTree.open(objects().heap(), block().getLong(Header.ROOT_AT)));
    }
}
