package io.entresol.infinispan;

import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;

/**
 * Segments that a node gave up while its store is open. What is in one of them when the node owns
 * it again came after it was dropped, of a write that was on its way or in a queue, and does not
 * count.
 */
final class GivenUp {
    private final IntSet segments = IntSets.mutableEmptySet();

    synchronized IntSet add(IntSet those) {
        segments.addAll(those);
        return those;
    }

    /** Those that were given up before, and are not any more. */
    synchronized IntSet regained(IntSet owned) {
        IntSet again = IntSets.mutableCopyFrom(owned);
        again.retainAll(segments);
        segments.removeAll(again);
        return again;
    }
}
