package io.entresol.collections;

import io.entresol.collections.internal.views.EntryMap;
import java.util.AbstractSet;
import java.util.Set;

/** The common part of sets in a heap: the keys of a map. Equal sets have equal elements. */
public abstract class PersistentSet<E> extends PersistentCollection<E> implements Set<E> {
    PersistentSet(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** The map, on the object's block. */
    @Override
    abstract EntryMap<E, Boolean> read();

    @Override
    AbstractSet<E> elements() {
        return this.<EntryMap<E, Boolean>>contents().keySet();
    }

    @Override
    public boolean equals(Object other) {
        return other == this || elements().equals(other);
    }

    @Override
    public int hashCode() {
        return elements().hashCode();
    }
}
