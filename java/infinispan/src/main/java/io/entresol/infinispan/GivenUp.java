package io.entresol.infinispan;

import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;

/**
 * Segments that a node gave up while its store is open. If the node owns such a segment again,
 * entries already in it came after it was dropped, from a write on its way or in a queue, and do
 * not count.
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
