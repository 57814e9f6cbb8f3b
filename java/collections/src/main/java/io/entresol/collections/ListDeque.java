package io.entresol.collections;

/** A list that is a deque, too. From Java 21 on it is a {@code SequencedCollection} by both. */
public interface ListDeque<E> extends Ends<E> {
    /** The same elements from the last to the first, as a view through which they can be changed. */
    ListDeque<E> reversed();
}
