package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import java.io.Serializable;
import java.util.EnumSet;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.stream.Stream;
import org.infinispan.Cache;
import org.infinispan.commons.TimeoutException;
import org.infinispan.commons.api.CacheContainerAdmin;
import org.infinispan.globalstate.GlobalConfigurationManager;
import org.infinispan.globalstate.ScopedState;
import org.infinispan.globalstate.impl.CacheState;
import org.infinispan.globalstate.impl.GlobalConfigurationManagerImpl;
import org.infinispan.manager.EmbeddedCacheManager;
import org.jboss.logging.Logger;

/**
 * Takes a cache back from all nodes if one of them could not make it, whichever way it was
 * deployed. First each node drops what it made, then the cluster forgets the cache. A cache that a
 * node had before stays, because it has entries.
 */
final class Undo {
    private static final Logger LOG = Logger.getLogger(Undo.class);
    private static final long PATIENCE_SECONDS = 60;
    /** Less than who has it forgotten waits for the answer. */
    private static final long TURN_SECONDS = 40;
    /** A removal goes on behind that, until the last node has dropped the cache. */
    private static final long REMOVAL_SECONDS = 15;
    private static final long PAUSE_MILLIS = 100;
    private static final EnumSet<CacheContainerAdmin.AdminFlag> NO_FLAGS =
            EnumSet.noneOf(CacheContainerAdmin.AdminFlag.class);

    private Undo() {
    }

    /** In a thread of its own, as it waits for who makes the cache; if that still holds then. */
    static void begin(EmbeddedCacheManager manager, String cache, BooleanSupplier holds) {
        Thread thread = new Thread(() -> {
            try {
                undo(manager, cache, holds);
            } catch (RuntimeException failure) {
                LOG.errorf(failure, "Cache %s could not be taken back from all nodes:"
                        + " entresol-grid undeploy %s", cache, cache);
            }
        }, "entresol takes back " + cache);
        thread.setDaemon(true);
        thread.start();
    }

    /**
     * Has the cluster forget a cache, and each node that learns of it drop what it has of it; if
     * that still holds once nobody makes or removes the cache. All nodes may be at it, and whoever
     * asked for the cache: the others wait for the first.
     */
    static void forget(EmbeddedCacheManager manager, String cache, BooleanSupplier holds) {
        GlobalConfigurationManager configurations = configurations(manager);
        long begun = System.nanoTime();
        while (awaitTurn(manager, cache) && holds.getAsBoolean()) {
            try {
                // A copy: who waits no longer hinders no removal.
                configurations.removeCache(cache, NO_FLAGS).toCompletableFuture().copy()
                        .orTimeout(REMOVAL_SECONDS, TimeUnit.SECONDS).join();
                return;
            } catch (CompletionException failure) {
                if (!isLate(failure)) {
                    throw failure;
                }
                // A node that is slow drops it later; what counts is that nobody is told to have it.
                if (!configurations.getStateCache().containsKey(key(cache))) {
                    return;
                }
                if (System.nanoTime() - begun > TimeUnit.SECONDS.toNanos(TURN_SECONDS)) {
                    throw failure;
                }
            }
        }
    }

    private static void undo(EmbeddedCacheManager manager, String cache, BooleanSupplier holds) {
        long begun = System.nanoTime();
        while (awaitTurn(manager, cache) && holds.getAsBoolean()) {
            try {
                if (everywhere(manager, knowing(cache)).contains(true)) {
                    LOG.errorf("Cache %s stays, as other nodes had it before. Mend what hinders it"
                            + " and start this node again", cache);
                    return;
                }
                String deployment = String.join(",", everywhere(manager, attempting(cache)));
                if (!holds.getAsBoolean()) {
                    // Somebody removed it, and what the others told may be of the next one.
                    return;
                }
                everywhere(manager, withdrawing(cache, deployment));
                everywhere(manager, forgetting(cache, deployment));
                LOG.infof("Cache %s is on no node", cache);
                return;
            } catch (CompletionException failure) {
                // As of a node that died meanwhile, which is not asked again, or of one in which
                // somebody who wants the cache has it started once more, until that has failed.
                if (System.nanoTime() - begun > TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS)) {
                    throw failure;
                }
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(PAUSE_MILLIS));
        }
    }

    /**
     * Until nobody makes or removes the cache: a change of what the cluster keeps of it that
     * changes nothing takes its turn. Whether the node still runs.
     */
    private static boolean awaitTurn(EmbeddedCacheManager manager, String cache) {
        Cache<ScopedState, Object> state = configurations(manager).getStateCache();
        CacheState none = new CacheState(null, "", NO_FLAGS);
        while (manager.getStatus().allowInvocations()) {
            try {
                state.replace(key(cache), none, none);
                return true;
            } catch (RuntimeException failure) {
                if (!isLate(failure)) {
                    throw failure;
                }
            }
        }
        return false;
    }

    /** What each node says. */
    private static <T> Queue<T> everywhere(EmbeddedCacheManager manager,
            Function<EmbeddedCacheManager, T> each) {
        Queue<T> said = new ConcurrentLinkedQueue<>();
        Privileged.getClusterExecutor(manager).timeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
                .<T>submitConsumer(each, (node, one, failure) -> {
                    if (failure != null) {
                        throw new CompletionException("node " + node, failure);
                    }
                    said.add(one);
                }).join();
        return said;
    }

    private static Function<EmbeddedCacheManager, Boolean> knowing(String cache) {
        return (Function<EmbeddedCacheManager, Boolean> & Serializable) manager ->
                DeployedCaches.of(manager).filter(there -> there.knew(cache)).isPresent();
    }

    private static Function<EmbeddedCacheManager, String> attempting(String cache) {
        return (Function<EmbeddedCacheManager, String> & Serializable) manager ->
                DeployedCaches.of(manager).map(there -> there.attempt(cache)).orElse("");
    }

    private static Function<EmbeddedCacheManager, String> withdrawing(String cache,
            String deployment) {
        return (Function<EmbeddedCacheManager, String> & Serializable) manager -> {
            DeployedCaches.of(manager).ifPresent(there -> there.withdraw(cache, deployment));
            return "";
        };
    }

    private static Function<EmbeddedCacheManager, String> forgetting(String cache,
            String deployment) {
        return (Function<EmbeddedCacheManager, String> & Serializable) manager -> {
            DeployedCaches.of(manager).ifPresent(there -> there.forget(cache, deployment));
            return "";
        };
    }

    private static GlobalConfigurationManager configurations(EmbeddedCacheManager manager) {
        return Privileged.getComponent(manager, GlobalConfigurationManager.class);
    }

    private static ScopedState key(String cache) {
        return new ScopedState(GlobalConfigurationManagerImpl.CACHE_SCOPE, cache);
    }

    private static boolean isLate(Throwable failure) {
        return Stream.iterate(failure, Objects::nonNull, Throwable::getCause)
                .anyMatch(cause -> cause instanceof TimeoutException
                        || cause instanceof java.util.concurrent.TimeoutException);
    }
}
