package io.entresol.collections;

import java.util.Deque;
import java.util.List;

/** A list that is a deque, too. From Java 21 on it is a {@code SequencedCollection} by both. */
public interface ListDeque<E> extends List<E>, Deque<E> {
    /** The same elements from the last to the first, as a view through which they can be changed. */
    ListDeque<E> reversed();

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
}
