package io.entresol.collections;

import io.entresol.collections.internal.blocks.Entries;
import io.entresol.collections.internal.blocks.SkipListEntries;

/**
 * A sorted map in a heap: a skip list of encoded keys, a block for each value. Every method is a
 * transaction or part of the thread's current one. Threads may share it, and reads wait for no
 * change; iterators go from key to key and show each entry as it is at that time. The order is that
 * of the encoded keys. {@link PersistentTreeMap} takes less time for most uses.
 */
public final class PersistentSkipListMap<K, V> extends PersistentSortedMap<K, V> {
    /** What heaps know of the class. */
    static final ObjectType<PersistentSkipListMap<?, ?>> TYPE =
            type(PersistentSkipListMap.class, PersistentSkipListMap::new);

    private PersistentSkipListMap(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty map. */
    public static <K, V> PersistentSkipListMap<K, V> create(
            ObjectHeap objects, Codec<K> keys, Codec<V> values) {
        return make(TYPE, objects, SkipListEntries::empty, keys, values);
    }

    /** The map of that handle, which was made with the same codecs. */
    public static <K, V> PersistentSkipListMap<K, V> open(
            ObjectHeap objects, long handle, Codec<K> keys, Codec<V> values) {
        return open(TYPE, objects, handle, keys, values);
    }

    @Override
    Entries entries() {
        return new SkipListEntries(objects().heap(), block());
    }
}
