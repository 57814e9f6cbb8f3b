package io.entresol.infinispan;

import io.entresol.Entries;
import io.entresol.PutOptions;
import io.entresol.infinispan.recovery.Arrivals;
import io.entresol.infinispan.recovery.OwnedSegments;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.function.IntFunction;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;

/**
 * Segments that a node gave up while its store is open; entries are taken as they come. If the node
 * owns such a segment again, entries already in it came after it was dropped, from a write on its
 * way or in a queue, and do not count.
 */
final class ReleasedSegments implements OwnedSegments {
    private final IntFunction<Entries> store;
    private final IntSet released = IntSets.mutableEmptySet();

    /** Of a store by its segments. */
    ReleasedSegments(IntFunction<Entries> store) {
        this.store = store;
    }

    @Override
    public CompletionStage<Optional<Long>> put(int segment, byte[] key, List<ByteBuffer> value) {
        return store.apply(segment).putAsync(ByteBuffer.wrap(key), value, PutOptions.DEFAULT);
    }

    @Override
    public CompletionStage<Void> own(IntSet segments) {
        return Arrivals.drop(store, regained(segments));
    }

    @Override
    public CompletionStage<Void> disown(IntSet segments) {
        synchronized (this) {
            released.addAll(segments);
        }
        return Arrivals.drop(store, segments);
    }

    /** Those that were given up before, and are not any more. */
    private synchronized IntSet regained(IntSet owned) {
        IntSet again = IntSets.mutableCopyFrom(owned);
        again.retainAll(released);
        released.removeAll(again);
        return again;
    }
}
