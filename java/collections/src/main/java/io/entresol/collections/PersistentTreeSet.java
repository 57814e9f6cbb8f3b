package io.entresol.collections;

import io.entresol.collections.internal.blocks.Presence;
import io.entresol.collections.internal.blocks.RadixEntries;
import io.entresol.collections.internal.views.EntryMap;
import io.entresol.collections.internal.views.SortedKeys;
import io.entresol.collections.internal.views.SortedView;
import java.util.Comparator;
import java.util.Iterator;
import java.util.NavigableSet;

/**
 * A sorted set in a heap: an adaptive radix tree of encoded elements. Every method is a transaction
 * or part of the thread's current one. Threads may share it; iterators show the moment of their
 * creation, without persistent objects that were removed since. The order is that of the encoded
 * elements.
 */
public final class PersistentTreeSet<E> extends PersistentSet<E> implements NavigableSet<E> {
    /** What heaps know of the class. */
    static final ObjectType<PersistentTreeSet<?>> TYPE =
            type(PersistentTreeSet.class, PersistentTreeSet::new);

    private PersistentTreeSet(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty set. */
    public static <E> PersistentTreeSet<E> create(ObjectHeap objects, Codec<E> codec) {
        return make(TYPE, objects, RadixEntries::empty, codec);
    }

    /** The set of that handle, which was made with the same codec. */
    public static <E> PersistentTreeSet<E> open(
            ObjectHeap objects, long handle, Codec<E> codec) {
        return open(TYPE, objects, handle, codec);
    }

    @Override
    EntryMap<E, Boolean> read() {
        return new SortedView<>(
                owner(), RadixEntries.open(objects().heap(), block()), codec(), new Presence());
    }

    @Override
    SortedKeys<E> elements() {
        return this.<SortedView<E, Boolean>>contents().keySet();
    }

    @Override
    public Comparator<? super E> comparator() {
        return elements().comparator();
    }

    @Override
    public E first() {
        return elements().first();
    }

    @Override
    public E last() {
        return elements().last();
    }

    @Override
    public E lower(E element) {
        return elements().lower(element);
    }

    @Override
    public E floor(E element) {
        return elements().floor(element);
    }

    @Override
    public E ceiling(E element) {
        return elements().ceiling(element);
    }

    @Override
    public E higher(E element) {
        return elements().higher(element);
    }

    @Override
    public E pollFirst() {
        return elements().pollFirst();
    }

    @Override
    public E pollLast() {
        return elements().pollLast();
    }

    @Override
    public NavigableSet<E> descendingSet() {
        return elements().descendingSet();
    }

    @Override
    public Iterator<E> descendingIterator() {
        return elements().descendingIterator();
    }

    @Override
    public NavigableSet<E> subSet(E from, boolean fromInclusive, E to, boolean toInclusive) {
        return elements().subSet(from, fromInclusive, to, toInclusive);
    }

    @Override
    public NavigableSet<E> headSet(E to, boolean inclusive) {
        return elements().headSet(to, inclusive);
    }

    @Override
    public NavigableSet<E> tailSet(E from, boolean inclusive) {
        return elements().tailSet(from, inclusive);
    }

    @Override
    public NavigableSet<E> subSet(E from, E to) {
        return elements().subSet(from, to);
    }

    @Override
    public NavigableSet<E> headSet(E to) {
        return elements().headSet(to);
    }

    @Override
    public NavigableSet<E> tailSet(E from) {
        return elements().tailSet(from);
    }
}
