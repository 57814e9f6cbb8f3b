package io.entresol.infinispan.recovery;

import java.io.Serializable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import org.infinispan.AdvancedCache;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.util.logging.Log;
import org.infinispan.util.logging.LogFactory;

/**
 * Starts a degraded cache again on a node that runs it, once the nodes that it lacks are back:
 * nobody can join a degraded cache, and Infinispan does not take back lost nodes. All nodes then
 * decide together which entries count, as after a kill of the whole cluster.
 */
final class Reunion {
    private static final Log LOG = LogFactory.getLog(Reunion.class);
    private static final long PAUSE_MILLIS = 2_000;

    private final AdvancedCache<?, ?> cache;
    private final AtomicBoolean begun = new AtomicBoolean();

    Reunion(AdvancedCache<?, ?> cache) {
        this.cache = cache;
    }

    /** Runs on a node that is asked to; {@code incarnation} is the one in which it is degraded. */
    static Function<EmbeddedCacheManager, String> request(String cache, long incarnation) {
        return (Function<EmbeddedCacheManager, String> & Serializable) asked -> {
            Recovery.reunite(asked, cache, incarnation);
            return "asked";
        };
    }

    /** Several may ask for it, each more than once. */
    void begin() {
        if (begun.compareAndSet(false, true)) {
            // Not in a thread of Infinispan's: these are what stopping waits for.
            Thread starting = new Thread(this::startAgain,
                    "entresol reunites " + cache.getName());
            starting.setDaemon(true);
            starting.start();
        }
    }

    private void startAgain() {
        LOG.infof("Cache %s was degraded, and those that it waited for are back: it is stopped"
                + " here and started again, so that all recover together", cache.getName());
        try {
            cache.stop();
        } catch (RuntimeException failure) {
            LOG.errorf(failure, "Cache %s could not be stopped; stop this node",
                    cache.getName());
            return;
        }
        String told = "";
        while (true) {
            try {
                cache.start();
                return;
            } catch (RuntimeException failure) {
                if (!isRunning() || UndeployedException.isCauseOf(failure)) {
                    return;
                }
                if (!told.equals(failure.toString())) {
                    told = failure.toString();
                    LOG.errorf(failure, "Cache %s is not started again yet; this node goes on"
                            + " trying", cache.getName());
                }
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(PAUSE_MILLIS));
            }
        }
    }

    private boolean isRunning() {
        return cache.getCacheManager().getStatus().allowInvocations();
    }
}
