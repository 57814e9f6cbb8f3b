package io.entresol.collections;

import java.util.AbstractSet;
import java.util.Set;

/** What sets in a heap have in common: the keys of a map. Equal sets have equal elements. */
public abstract class PersistentSet<E> extends PersistentCollection<E> implements Set<E> {
    private volatile EntryMap<E, Boolean> view;

    PersistentSet(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** The map, on the object's block. */
    abstract EntryMap<E, Boolean> map();

    /** The map; refused if the object was undone. */
    EntryMap<E, Boolean> view() {
        handle();
        if (view == null) {
            synchronized (this) {
                if (view == null) {
                    view = map();
                }
            }
        }
        return view;
    }

    @Override
    AbstractSet<E> elements() {
        return (AbstractSet<E>) view().keySet();
    }

    @Override
    protected void trace(Tracer tracer) {
        view().trace(tracer);
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
