package io.entresol.collections;

/**
 * A list that is a deque, too. Both have {@code reversed} of their own in Java 21 and newer, which
 * has to know what a class that is both does: what this one declares, under each of their types.
 */
public interface ListDeque<E> extends Ends<E>, Reversed.AsList<E>, Reversed.AsDeque<E>,
        Reversed.AsSequence<E> {
    /** The same elements from the last to the first, as a view through which they can be changed. */
    @Override
    default ListDeque<E> reversed() {
        throw new AbstractMethodError("each class that is a list and a deque has its own");
    }
}
