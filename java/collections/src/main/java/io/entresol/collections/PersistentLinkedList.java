package io.entresol.collections;

import io.entresol.collections.internal.blocks.Cells;
import io.entresol.collections.internal.blocks.Links;
import io.entresol.collections.internal.views.Contents;
import io.entresol.collections.internal.views.LinkedElements;
import java.util.Iterator;

/**
 * A list in a heap that is quick to change at both ends and at the place of an iterator, and slow
 * to find an index. Every method is a transaction or part of the thread's current one. Iterators
 * fail fast. Threads may share it, as far as indices make sense then.
 */
public final class PersistentLinkedList<E> extends PersistentList<E> implements ListDeque<E> {
    /** What heaps know of the class. */
    static final ObjectType<PersistentLinkedList<?>> TYPE =
            type(PersistentLinkedList.class, PersistentLinkedList::new);

    private PersistentLinkedList(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes an empty list. */
    public static <E> PersistentLinkedList<E> create(ObjectHeap objects, Codec<E> codec) {
        return make(TYPE, objects, Links::empty, codec);
    }

    /** The list of that handle, which was made with the same codec. */
    public static <E> PersistentLinkedList<E> open(
            ObjectHeap objects, long handle, Codec<E> codec) {
        return open(TYPE, objects, handle, codec);
    }

    @Override
    public void addFirst(E element) {
        elements().addFirst(element);
    }

    @Override
    public void addLast(E element) {
        elements().addLast(element);
    }

    @Override
    public boolean offerFirst(E element) {
        addFirst(element);
        return true;
    }

    @Override
    public boolean offerLast(E element) {
        addLast(element);
        return true;
    }

    @Override
    public E removeFirst() {
        return elements().removeFirst();
    }

    @Override
    public E removeLast() {
        return elements().removeLast();
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
    public E getFirst() {
        return elements().getFirst();
    }

    @Override
    public E getLast() {
        return elements().getLast();
    }

    @Override
    public E peekFirst() {
        return elements().peekFirst();
    }

    @Override
    public E peekLast() {
        return elements().peekLast();
    }

    @Override
    public boolean removeFirstOccurrence(Object element) {
        return remove(element);
    }

    @Override
    public boolean removeLastOccurrence(Object element) {
        return elements().removeLastOccurrence(element);
    }

    @Override
    public ListDeque<E> reversed() {
        return elements().reversed(this);
    }

    @Override
    public Iterator<E> descendingIterator() {
        return elements().descendingIterator();
    }

    @Override
    LinkedElements<E> elements() {
        return contents();
    }

    @Override
    Contents read() {
        return new LinkedElements<E>(owner(), new Links(objects().heap(), block()),
                new Cells<>(objects().heap(), codec(0)));
    }
}
