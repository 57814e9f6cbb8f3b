package io.entresol.collections;

import io.entresol.heap.RadixTree;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A set in a heap that finds elements by a hash of their bytes. Every method is a transaction or
 * part of the thread's current one. Threads may share it; iterators show the moment they were made
 * at, without persistent objects that were removed since.
 */
public final class PersistentHashSet<E> extends PersistentSet<E> {
    /** What heaps know of the class. */
    @SuppressWarnings("unchecked")
    static final ObjectType<PersistentHashSet<?>> TYPE = ObjectType.of(
            (Class<PersistentHashSet<?>>) (Class<?>) PersistentHashSet.class,
            Header.FIELDS, PersistentHashSet::new);

    private PersistentHashSet(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty set. */
    @SuppressWarnings("unchecked")
    public static <E> PersistentHashSet<E> create(ObjectHeap objects, Codec<E> codec) {
        return objects.run(() -> {
            long root = RadixTree.create(objects.heap()).handle();
            return (PersistentHashSet<E>) make(TYPE, objects, range -> {
                range.setLong(Header.ROOT_AT, root);
                range.setLong(Header.SEED_AT, ThreadLocalRandom.current().nextLong());
            }, codec);
        });
    }

    /** The set of that handle, which was made with the same codec. */
    @SuppressWarnings("unchecked")
    public static <E> PersistentHashSet<E> open(
            ObjectHeap objects, long handle, Codec<E> codec) {
        return (PersistentHashSet<E>) open(TYPE.type(), objects, handle, codec);
    }

    @Override
    EntryMap<E, Boolean> map() {
        RadixTree tree = RadixTree.open(objects().heap(), block().getLong(Header.ROOT_AT));
        Entries entries =
                new HashedEntries(new RadixEntries(tree), block().getLong(Header.SEED_AT));
        return new EntryMap<>(this, entries, codec(), new Presence());
    }
}
