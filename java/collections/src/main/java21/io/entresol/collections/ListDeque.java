package io.entresol.collections;

import java.util.Deque;
import java.util.List;

/**
 * A list that is a deque, too. Both have {@code reversed} of their own in Java 21 and newer, which
 * has to know what a class that is both does: what this one declares, under each of their types.
 */
public interface ListDeque<E> extends List<E>, Deque<E>, Reversed.AsList<E>, Reversed.AsDeque<E>,
        Reversed.AsSequence<E> {
    /** The same elements from the last to the first, as a view through which they can be changed. */
    @Override
    default ListDeque<E> reversed() {
        throw new AbstractMethodError("each class that is a list and a deque has its own");
    }

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
