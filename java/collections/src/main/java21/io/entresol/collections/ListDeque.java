package io.entresol.collections;

/**
 * A list that is a deque, too. From Java 21 on, both interfaces declare {@code reversed}, so a
 * class that is both must declare the method itself: this interface does, under each of their
 * types.
 */
public interface ListDeque<E> extends Ends<E>, Reversed.AsList<E>, Reversed.AsDeque<E>,
        Reversed.AsSequence<E> {
    /** The same elements from the last to the first, as a view through which they can be changed. */
    @Override
    default ListDeque<E> reversed() {
        throw new AbstractMethodError("each class that is a list and a deque has its own");
    }
}
