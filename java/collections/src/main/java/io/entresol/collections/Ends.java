package io.entresol.collections;

import java.util.Deque;
import java.util.List;

/**
 * The methods for the ends of a list that is a deque, the same in all versions of {@link
 * ListDeque}.
 */
interface Ends<E> extends List<E>, Deque<E> {
    // Lists of Java 21 and newer have these, too, and would ask for an index.

    @Override
    void addFirst(E element);

    @Override
    void addLast(E element);

    @Override
    E getFirst();

    @Override
    E getLast();

    @Override
    E removeFirst();

    @Override
    E removeLast();

    @Override
    default boolean offer(E element) {
        return offerLast(element);
    }

    @Override
    default E remove() {
        return removeFirst();
    }

    @Override
    default E poll() {
        return pollFirst();
    }

    @Override
    default E element() {
        return getFirst();
    }

    @Override
    default E peek() {
        return peekFirst();
    }

    @Override
    default void push(E element) {
        addFirst(element);
    }

    @Override
    default E pop() {
        return removeFirst();
    }
}
