package io.entresol.infinispan.recovery;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachelistener.annotation.PartitionStatusChanged;
import org.infinispan.notifications.cachelistener.annotation.TopologyChanged;
import org.infinispan.notifications.cachelistener.event.PartitionStatusChangedEvent;
import org.infinispan.notifications.cachelistener.event.TopologyChangedEvent;
import org.infinispan.partitionhandling.AvailabilityMode;

/**
 * Writes a topology down before this node takes part in it: Infinispan waits for the stages that
 * the methods return. Public because Infinispan calls it.
 */
@Listener
public final class TopologyListener {
    private static final CompletionStage<Void> DONE = CompletableFuture.completedFuture(null);

    private final Recovery recovery;

    TopologyListener(Recovery recovery) {
        this.recovery = recovery;
    }

    /** Before and after a topology is installed. */
    @TopologyChanged
    public CompletionStage<Void> topologyChanged(TopologyChangedEvent<?, ?> event) {
        return event.isPre()
                ? recovery.installing(
                        event.getReadConsistentHashAtEnd(), event.getNewTopologyId())
                : DONE;
    }

    /** Before and after a cache changes between available and degraded. */
    @PartitionStatusChanged
    public CompletionStage<Void> statusChanged(PartitionStatusChangedEvent<?, ?> event) {
        if (event.getAvailabilityMode() != AvailabilityMode.AVAILABLE) {
            return DONE;
        }
        if (event.isPre()) {
            return recovery.becomingAvailable();
        }
        recovery.becameAvailable();
        return DONE;
    }
}
