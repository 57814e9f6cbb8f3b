package io.entresol.collections;

import io.entresol.collections.internal.blocks.HashedEntries;
import io.entresol.collections.internal.blocks.Presence;
import io.entresol.collections.internal.views.EntryMap;

/**
 * A set in a heap that finds elements by a hash of their bytes. Every method is a transaction or
 * part of the thread's current one. Threads may share it; iterators show the moment of their
 * creation, without persistent objects that were removed since.
 */
public final class PersistentHashSet<E> extends PersistentSet<E> {
    /** What heaps know of the class. */
    static final ObjectType<PersistentHashSet<?>> TYPE =
            type(PersistentHashSet.class, PersistentHashSet::new);

    private PersistentHashSet(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty set. */
    public static <E> PersistentHashSet<E> create(ObjectHeap objects, Codec<E> codec) {
        return make(TYPE, objects, HashedEntries::empty, codec);
    }

    /** The set of that handle, which was made with the same codec. */
    public static <E> PersistentHashSet<E> open(
            ObjectHeap objects, long handle, Codec<E> codec) {
        return open(TYPE, objects, handle, codec);
    }

    @Override
    EntryMap<E, Boolean> read() {
        return new EntryMap<>(
                owner(), HashedEntries.open(objects().heap(), block()), codec(), new Presence());
    }
}
