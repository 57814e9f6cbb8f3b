package io.entresol.collections.internal.views;

import io.entresol.collections.ListDeque;
import java.util.Iterator;

/** A list that is a deque, from its last element to its first. */
final class ReversedDeque<E> extends ListPart<E> implements ListDeque<E> {
    private final ListDeque<E> forwards;

    ReversedDeque(ListDeque<E> forwards, Backwards<E> backwards, Change change) {
        super(backwards, change);
        this.forwards = forwards;
    }

    @Override
    public ListDeque<E> reversed() {
        return forwards;
    }

    @Override
    public void addFirst(E element) {
        forwards.addLast(element);
    }

    @Override
    public void addLast(E element) {
        forwards.addFirst(element);
    }

    @Override
    public boolean offerFirst(E element) {
        return forwards.offerLast(element);
    }

    @Override
    public boolean offerLast(E element) {
        return forwards.offerFirst(element);
    }

    @Override
    public E removeFirst() {
        return forwards.removeLast();
    }

    @Override
    public E removeLast() {
        return forwards.removeFirst();
    }

    @Override
    public E pollFirst() {
        return forwards.pollLast();
    }

    @Override
    public E pollLast() {
        return forwards.pollFirst();
    }

    @Override
    public E getFirst() {
        return forwards.getLast();
    }

    @Override
    public E getLast() {
        return forwards.getFirst();
    }

    @Override
    public E peekFirst() {
        return forwards.peekLast();
    }

    @Override
    public E peekLast() {
        return forwards.peekFirst();
    }

    @Override
    public boolean removeFirstOccurrence(Object element) {
        return forwards.removeLastOccurrence(element);
    }

    @Override
    public boolean removeLastOccurrence(Object element) {
        return forwards.removeFirstOccurrence(element);
    }

    @Override
    public Iterator<E> descendingIterator() {
        return forwards.iterator();
    }
}
