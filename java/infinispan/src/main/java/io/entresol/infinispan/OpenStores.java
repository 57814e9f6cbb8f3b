package io.entresol.infinispan;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import org.infinispan.configuration.cache.AsyncStoreConfiguration;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.persistence.spi.InitializationContext;

/**
 * The stores that are open in this process, so that a cache which has stopped leaves none open. With
 * write-behind Infinispan stops a store once its queue is written: it waits for ever for one that is
 * not available, and does not stop one that refused the last of the queue, whose device would be in
 * use until the process ends.
 */
final class OpenStores {
    private static final Map<EntresolStore<?, ?>, Open> ALL = new ConcurrentHashMap<>();
    /** How much longer than from one look of Infinispan's to the next one is waited for. */
    private static final long PATIENCE_MILLIS = 10_000;

    private OpenStores() {
    }

    private record Open(InitializationContext context, StoreHealth health, Loads loads) {
        CompletionStage<Void> changed(Collection<?> keys) {
            CompletionStage<Void> over = CompletableFuture.completedFuture(null);
            if (keys.isEmpty()) {
                return loads.allChanged(over);
            }
            for (Object key : keys) {
                byte[] bytes = StoredEntry.marshalled(key, context.getPersistenceMarshaller());
                over = over.thenCombine(loads.changed(bytes,
                        CompletableFuture.completedFuture(null)), (one, other) -> null);
            }
            return over;
        }

        boolean isOf(GlobalConfiguration container, String cache) {
            return context.getGlobalConfiguration() == container
                    && context.getCache().getName().equals(cache);
        }

        /** Zero if nothing waits for the store to be available. */
        long lookMillis() {
            AsyncStoreConfiguration behind = context.getConfiguration().async();
            return behind.enabled() && !behind.failSilently() ? Math.max(0, context.getCache()
                    .getCacheConfiguration().persistence().availabilityInterval()) : 0;
        }
    }

    static void add(EntresolStore<?, ?> store, InitializationContext context, StoreHealth health,
            Loads loads) {
        ALL.put(store, new Open(context, health, loads));
    }

    static void remove(EntresolStore<?, ?> store) {
        ALL.remove(store);
    }

    /**
     * Once those who loaded these keys before were told; of all keys, if there are none. It is for
     * changes that a store does not see before they are over: see {@link Loads}.
     */
    static CompletionStage<Void> changed(GlobalConfiguration container, String cache,
            Collection<?> keys) {
        CompletionStage<Void> over = CompletableFuture.completedFuture(null);
        for (Open open : ALL.values()) {
            if (open.isOf(container, cache)) {
                over = over.thenCombine(open.changed(keys), (one, other) -> null);
            }
        }
        return over;
    }

    /** A queue that waits for a store of the cache is to be refused now, rather than never. */
    static void stopping(GlobalConfiguration container, String cache) {
        for (Open open : ALL.values()) {
            if (open.isOf(container, cache) && open.lookMillis() > 0) {
                open.health().stopsWaiting(open.lookMillis() + PATIENCE_MILLIS);
            }
        }
    }

    /** Stops what Infinispan left open. */
    static void stopped(GlobalConfiguration container, String cache) {
        for (EntresolStore<?, ?> store : List.copyOf(ALL.keySet())) {
            Open open = ALL.get(store);
            if (open != null && open.isOf(container, cache)) {
                store.stop().toCompletableFuture().join();
            }
        }
    }
}
