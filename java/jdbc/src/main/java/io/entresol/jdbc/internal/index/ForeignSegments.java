package io.entresol.jdbc.internal.index;

import io.entresol.infinispan.Privileged;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.infinispan.AdvancedCache;
import org.infinispan.distribution.ch.ConsistentHash;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachelistener.annotation.TopologyChanged;
import org.infinispan.notifications.cachelistener.event.TopologyChangedEvent;
import org.infinispan.query.mapper.mapping.SearchMapping;
import org.infinispan.remoting.transport.Address;
import org.infinispan.util.concurrent.BlockingManager;

/**
 * Takes entries in segments that the node no longer owns out of an index that was rebuilt from a
 * store, as Infinispan takes them out of the store: once, when the node has joined.
 */
@Listener
public final class ForeignSegments {
    private final AdvancedCache<?, ?> cache;
    private final SearchMapping mapping;
    private final BlockingManager blocking;

    public ForeignSegments(AdvancedCache<?, ?> cache, SearchMapping mapping) {
        this.cache = cache;
        this.mapping = mapping;
        this.blocking = Privileged.getComponent(
                cache.getCacheManager(), BlockingManager.class);
    }

    /** For Infinispan, which waits for it before the topology is there for others. */
    @TopologyChanged
    public CompletionStage<Void> changed(TopologyChangedEvent<?, ?> event) {
        ConsistentHash owners = event.getWriteConsistentHashAtEnd();
        Address self = cache.getRpcManager().getAddress();
        boolean settled = owners.equals(event.getReadConsistentHashAtEnd())
                && owners.getMembers().contains(self)
                && !owners.getSegmentsForOwner(self).isEmpty();
        if (event.isPre() || !settled) {
            return CompletableFuture.completedFuture(null);
        }
        Set<Integer> own = owners.getSegmentsForOwner(self);
        Set<String> foreign = new HashSet<>();
        for (int segment = 0; segment < owners.getNumSegments(); segment++) {
            if (!own.contains(segment)) {
                foreign.add(String.valueOf(segment));
            }
        }
        return cache.removeListenerAsync(this).thenCompose(removed -> foreign.isEmpty()
                ? CompletableFuture.completedFuture(null)
                : blocking.runBlocking(() -> mapping.scopeAll().workspace().purge(foreign),
                        "foreign segments"));
    }
}
