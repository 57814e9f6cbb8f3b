package io.entresol.collections;

import java.util.concurrent.ThreadLocalRandom;

/**
 * A sorted map in a heap: a skip list of encoded keys, a block for each value. Every method is a
 * transaction or part of the thread's current one. Threads may share it, and reads wait for no
 * change; iterators go from key to key and show each entry as it is by then. The order is that of
 * the encoded keys. {@link PersistentTreeMap} takes less time for most uses.
 */
public final class PersistentSkipListMap<K, V> extends PersistentSortedMap<K, V> {
    /** What heaps know of the class. */
    @SuppressWarnings("unchecked")
    static final ObjectType<PersistentSkipListMap<?, ?>> TYPE = ObjectType.of(
            (Class<PersistentSkipListMap<?, ?>>) (Class<?>) PersistentSkipListMap.class,
            Header.FIELDS, PersistentSkipListMap::new);

    private PersistentSkipListMap(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty map. */
    @SuppressWarnings("unchecked")
    public static <K, V> PersistentSkipListMap<K, V> create(
            ObjectHeap objects, Codec<K> keys, Codec<V> values) {
        return objects.run(() -> {
            long seed = ThreadLocalRandom.current().nextLong();
            long turn = Turn.create(objects.heap());
            long head = SkipListEntries.createHead(objects.heap());
            return (PersistentSkipListMap<K, V>) make(TYPE, objects, range -> {
                range.setLong(Header.ROOT_AT, turn);
                range.setLong(Header.FIRST_AT, head);
                range.setLong(Header.SEED_AT, seed);
            }, keys, values);
        });
    }

    /** The map of that handle, which was made with the same codecs. */
    @SuppressWarnings("unchecked")
    public static <K, V> PersistentSkipListMap<K, V> open(
            ObjectHeap objects, long handle, Codec<K> keys, Codec<V> values) {
        return (PersistentSkipListMap<K, V>) open(TYPE.type(), objects, handle, keys, values);
    }

    @Override
    Entries entries() {
        return new SkipListEntries(objects().heap(), block());
    }
}
