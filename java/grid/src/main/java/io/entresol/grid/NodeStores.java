package io.entresol.grid;

import io.entresol.StoreException;
import io.entresol.StoreStatistics;
import io.entresol.infinispan.EntresolStore;
import io.entresol.infinispan.EntresolStoreConfiguration;
import io.entresol.infinispan.recovery.Withdrawal;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.infinispan.Cache;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.AsyncInterceptorChain;
import org.infinispan.interceptors.impl.CacheMgmtInterceptor;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.persistence.manager.PersistenceManager;

/**
 * The flash stores of this node's caches, for the console of stores: as JSON, in the words of
 * {@code entresol.h}.
 */
final class NodeStores {
    /** Groups of segments in a map. */
    private static final int GROUPS = 480;
    /** Stores that the page shows at length where none is chosen. */
    private static final int MAPS = 4;
    private static final double NANOS_OF_A_MICROSECOND = 1_000;
    /** What the table of all nodes needs of each store. */
    private static final List<String> IN_SHORT = List.of("entries", "flash_live_bytes",
            "capacity_bytes", "damaged", "ground_lost", "oldest_pending_io_seconds");

    private NodeStores() {
    }

    /**
     * A cache on flash, with its figures.
     *
     * @param cache null where the node does not run it
     * @param withdrew why it does not; null where it runs it
     */
    record Found(String name, Cache<?, ?> cache, EntresolStore<?, ?> store,
            StoreStatistics figures, String withdrew) {
    }

    /** Those that run, and those that the node withdrew from, by their names. */
    static List<Found> of(EmbeddedCacheManager manager) {
        List<Found> all = new ArrayList<>();
        for (String name : manager.getCacheNames()) {
            // One that stops meanwhile must not be started again.
            Cache<?, ?> cache = manager.isRunning(name) ? manager.getCache(name, false) : null;
            if (cache == null) {
                Withdrawal.reason(manager, name).ifPresent(reason ->
                        all.add(new Found(name, null, null, null, reason)));
                continue;
            }
            for (EntresolStore<?, ?> store : stores(cache)) {
                figures(store).ifPresent(figures ->
                        all.add(new Found(name, cache, store, figures, null)));
            }
        }
        all.sort(Comparator.comparing(Found::name));
        return all;
    }

    @SuppressWarnings("unchecked")
    private static List<EntresolStore<?, ?>> stores(Cache<?, ?> cache) {
        return ComponentRegistry.of(cache).getComponent(PersistenceManager.class)
                .getStores(EntresolStore.class).stream()
                .map(store -> (EntresolStore<?, ?>) store).collect(Collectors.toList());
    }

    /** Nothing of a store that is stopped, or stops meanwhile. */
    private static Optional<StoreStatistics> figures(EntresolStore<?, ?> store) {
        try {
            return store.statistics();
        } catch (StoreException closed) {
            return Optional.empty();
        }
    }

    /** What is sampled. */
    static String figures(EmbeddedCacheManager manager, Latencies.OfStores latencies) {
        return array(of(manager).stream().map(found -> with(Json.object("name", found.name()),
                measured(found) + (found.store() == null ? ""
                        : ",\"took\":" + latencies.of(found.store()).taken()))))
                .insert(0, "{\"stores\":").append('}').toString();
    }

    /** At length; of a cache that is chosen, or those that a page has room for, with a map. */
    static String look(EmbeddedCacheManager manager, String chosen) {
        AtomicInteger maps = new AtomicInteger();
        return array(of(manager).stream().map(found -> {
            boolean mapped = chosen == null
                    ? found.store() != null && found.figures().entries() > 0
                            && maps.getAndIncrement() < MAPS
                    : chosen.equals(found.name());
            return with(described(found), measured(found) + (mapped ? map(found) : ""));
        })).toString();
    }

    private static StringBuilder array(Stream<String> stores) {
        return new StringBuilder(stores.collect(Collectors.joining(",", "[", "]")));
    }

    /** An object with further members, which are text already: reading them would cost more. */
    private static String with(Json object, String members) {
        String text = object.toString();
        return text.substring(0, text.length() - 1) + members + "}";
    }

    private static String measured(Found found) {
        return found.store() == null ? "" : ",\"store\":" + found.figures().json()
                + ",\"cache\":" + counted(found.cache());
    }

    private static String map(Found found) {
        try {
            return found.store().segments(GROUPS).map(groups -> ",\"segments\":" + groups)
                    .orElse("");
        } catch (StoreException closed) {
            return "";
        }
    }

    private static Json described(Found found) {
        Json store = Json.object("name", found.name());
        if (found.store() == null) {
            return store.set("withdrew", found.withdrew());
        }
        Configuration configuration = found.cache().getCacheConfiguration();
        store.set("template", Template.of(configuration).toString())
                .set("device", found.store().devices().stream().map(String::valueOf)
                        .collect(Collectors.joining(", ")))
                .set("memory", Json.object("cap_bytes", memoryBytes(configuration)));
        setTrouble(store, found);
        return store;
    }

    /** In a few figures, for other nodes. */
    static Json inShort(EmbeddedCacheManager manager) {
        Json stores = Json.array();
        for (Found found : of(manager)) {
            Json store = Json.object("name", found.name());
            if (found.store() == null) {
                store.set("withdrew", found.withdrew());
            } else {
                Json figures = Json.object("poisoned", found.figures().poisoned());
                IN_SHORT.forEach(name -> figures.set(name, found.figures().figure(name)));
                setTrouble(store.set("store", figures), found);
            }
            stores.add(store);
        }
        return stores;
    }

    private static void setTrouble(Json store, Found found) {
        try {
            found.store().trouble().ifPresent(trouble -> store.set("trouble",
                    Json.object("what", trouble.what(), "next", trouble.next())));
        } catch (StoreException closed) {
            // It stopped meanwhile.
        }
    }

    private static long memoryBytes(Configuration configuration) {
        return configuration.persistence().stores().stream()
                .filter(EntresolStoreConfiguration.class::isInstance)
                .map(EntresolStoreConfiguration.class::cast)
                .mapToLong(EntresolStoreConfiguration::memoryBytes).findFirst().orElse(0);
    }

    /** What Infinispan counts of a cache on this node; null if its statistics are off. */
    private static Json counted(Cache<?, ?> cache) {
        // Not the cache's own statistics, which count the entries of the store each time.
        CacheMgmtInterceptor all = ComponentRegistry.of(cache)
                .getComponent(AsyncInterceptorChain.class)
                .findInterceptorExtending(CacheMgmtInterceptor.class);
        return all == null || !all.getStatisticsEnabled() ? Json.nil() : Json.object(
                "reads", all.getHits() + all.getMisses(), "hits", all.getHits(),
                "misses", all.getMisses(),
                "writes", all.getStores(), "removes", all.getRemoveHits(),
                "evictions", all.getEvictions(), "in_heap", all.getApproximateEntriesInMemory(),
                "read_us", all.getAverageReadTimeNanos() / NANOS_OF_A_MICROSECOND,
                "write_us", all.getAverageWriteTimeNanos() / NANOS_OF_A_MICROSECOND);
    }
}
