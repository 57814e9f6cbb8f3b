package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import java.io.Serializable;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.infinispan.manager.EmbeddedCacheManager;
import org.jboss.logging.Logger;

/**
 * Tells the nodes of the view, again and again until it is closed, that this node waits for them in
 * the start of a cache that they may lack. It also tells nodes that join later.
 */
final class Offer implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Offer.class);
    private static final long PERIOD_MILLIS = 500;
    private static final long PATIENCE_SECONDS = 10;

    private final ScheduledExecutorService telling;

    private Offer(ScheduledExecutorService telling) {
        this.telling = telling;
    }

    /** The cache of that configuration, as {@link Endpoints#xml} writes it. */
    static Offer begin(EmbeddedCacheManager manager, String cache, String configuration) {
        Offer offer = new Offer(Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "entresol offers " + cache);
            thread.setDaemon(true);
            return thread;
        }));
        // Most of the time all have it, and the start is over before.
        offer.telling.scheduleWithFixedDelay(() -> tell(manager, cache, configuration),
                PERIOD_MILLIS, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
        return offer;
    }

    @Override
    public void close() {
        telling.shutdownNow();
    }

    private static void tell(EmbeddedCacheManager manager, String cache, String configuration) {
        try {
            Privileged.getClusterExecutor(manager)
                    .timeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
                    .submitConsumer(told(cache, configuration), (node, said, failure) -> {
                        if (failure != null) {
                            LOG.debugf(failure, "Node %s was not told of cache %s", node, cache);
                        }
                    }).join();
        } catch (RuntimeException failure) {
            LOG.debugf(failure, "The others were not told of cache %s", cache);
        }
    }

    /** Runs on the node that is told. */
    private static Function<EmbeddedCacheManager, String> told(String cache,
            String configuration) {
        return (Function<EmbeddedCacheManager, String> & Serializable) manager -> {
            DeployedCaches.of(manager).ifPresent(there -> there.take(cache, configuration));
            return "";
        };
    }
}
