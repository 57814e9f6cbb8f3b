package io.entresol.infinispan.recovery;

import io.entresol.infinispan.Privileged;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.manager.EmbeddedCacheManager;

/** The objects that answer other nodes, by container of this process, then by name of cache. */
final class Started<T> {
    /** What is known of caches that did not start keeps no container from being collected. */
    private final Map<GlobalComponentRegistry, Map<String, T>> all =
            Collections.synchronizedMap(new WeakHashMap<>());

    void add(GlobalComponentRegistry container, String cache, T who) {
        all.compute(container, (same, caches) -> {
            Map<String, T> those = caches == null ? new ConcurrentHashMap<>() : caches;
            those.put(cache, who);
            return those;
        });
    }

    void remove(GlobalComponentRegistry container, String cache, T who) {
        all.computeIfPresent(container, (same, caches) -> {
            caches.remove(cache, who);
            return caches.isEmpty() ? null : caches;
        });
    }

    Optional<T> find(EmbeddedCacheManager manager, String cache) {
        return Optional.ofNullable(
                all.getOrDefault(Privileged.getRegistry(manager), Map.of()).get(cache));
    }
}
