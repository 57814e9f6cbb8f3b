package io.entresol.collections;

import io.entresol.heap.RadixTree;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A map in a heap that finds keys by a hash of their bytes. Every method is a transaction or part
 * of the thread's current one. Threads may share it; iterators show the moment they were made at,
 * except that entries which lead to persistent objects show as they are by then. Null is a key or a
 * value where the codec takes it.
 */
public final class PersistentHashMap<K, V> extends PersistentMap<K, V> {
    /** What heaps know of the class. */
    @SuppressWarnings("unchecked")
    static final ObjectType<PersistentHashMap<?, ?>> TYPE = ObjectType.of(
            (Class<PersistentHashMap<?, ?>>) (Class<?>) PersistentHashMap.class,
            Header.FIELDS, PersistentHashMap::new);

    private PersistentHashMap(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty map. */
    @SuppressWarnings("unchecked")
    public static <K, V> PersistentHashMap<K, V> create(
            ObjectHeap objects, Codec<K> keys, Codec<V> values) {
        return objects.run(() -> {
            long root = RadixTree.create(objects.heap()).handle();
            return (PersistentHashMap<K, V>) make(TYPE, objects, range -> {
                range.setLong(Header.ROOT_AT, root);
                range.setLong(Header.SEED_AT, ThreadLocalRandom.current().nextLong());
            }, keys, values);
        });
    }

    /** The map of that handle, which was made with the same codecs. */
    @SuppressWarnings("unchecked")
    public static <K, V> PersistentHashMap<K, V> open(
            ObjectHeap objects, long handle, Codec<K> keys, Codec<V> values) {
        return (PersistentHashMap<K, V>) open(TYPE.type(), objects, handle, keys, values);
    }

    @Override
    Entries entries() {
        RadixTree tree = RadixTree.open(objects().heap(), block().getLong(Header.ROOT_AT));
        return new HashedEntries(new RadixEntries(tree), block().getLong(Header.SEED_AT));
    }

    @Override
    EntryMap<K, V> view(Entries entries, Codec<K> keys, Values<V> values) {
        return new EntryMap<>(this, entries, keys, values);
    }
}
