package io.entresol.collections;

import io.entresol.heap.RadixTree;
import java.util.Comparator;
import java.util.Iterator;
import java.util.NavigableSet;

/**
 * A sorted set in a heap: an adaptive radix tree of encoded elements. Every method is a transaction
 * or part of the thread's current one. Threads may share it; iterators show the moment they were
 * made at, without persistent objects that were removed since. The order is that of the encoded
 * elements.
 */
public final class PersistentTreeSet<E> extends PersistentSet<E> implements NavigableSet<E> {
    /** What heaps know of the class. */
    @SuppressWarnings("unchecked")
    static final ObjectType<PersistentTreeSet<?>> TYPE = ObjectType.of(
            (Class<PersistentTreeSet<?>>) (Class<?>) PersistentTreeSet.class,
            Header.FIELDS, PersistentTreeSet::new);

    private PersistentTreeSet(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty set. */
    @SuppressWarnings("unchecked")
    public static <E> PersistentTreeSet<E> create(ObjectHeap objects, Codec<E> codec) {
        return objects.run(() -> {
            long root = RadixTree.create(objects.heap()).handle();
            return (PersistentTreeSet<E>) make(TYPE, objects,
                    range -> range.setLong(Header.ROOT_AT, root), codec);
        });
    }

    /** The set of that handle, which was made with the same codec. */
    @SuppressWarnings("unchecked")
    public static <E> PersistentTreeSet<E> open(
            ObjectHeap objects, long handle, Codec<E> codec) {
        return (PersistentTreeSet<E>) open(TYPE.type(), objects, handle, codec);
    }

    @Override
    EntryMap<E, Boolean> map() {
        RadixTree tree = RadixTree.open(objects().heap(), block().getLong(Header.ROOT_AT));
        return new SortedView<>(this, new RadixEntries(tree), codec(), new Presence());
    }

    @Override
    SortedKeys<E> elements() {
        return (SortedKeys<E>) super.elements();
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
