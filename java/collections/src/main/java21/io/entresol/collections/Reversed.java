package io.entresol.collections;

import java.util.Deque;
import java.util.List;
import java.util.SequencedCollection;

/**
 * The types under which interfaces of Java declare {@code reversed}, for compilers that read those
 * of an older Java.
 */
final class Reversed {
    private Reversed() {}

    /** What {@code List} declares. */
    interface AsList<E> extends List<E> {
        /** As a list. */
        List<E> reversed();
    }

    /** What {@code Deque} declares. */
    interface AsDeque<E> extends Deque<E> {
        /** As a deque. */
        Deque<E> reversed();
    }

    /** What {@code SequencedCollection} declares. */
    interface AsSequence<E> extends SequencedCollection<E> {
        /** As a sequence. */
        SequencedCollection<E> reversed();
    }
}
