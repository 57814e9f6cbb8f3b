package io.entresol.infinispan;

import java.util.Map;
import java.util.Optional;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import org.infinispan.configuration.global.GlobalConfiguration;

/**
 * The reasons why stores of this process could not be opened, by container and cache. Infinispan
 * does not tell them to whoever asked for the cache.
 */
public final class Unopened {
    private static final Map<GlobalConfiguration, Map<String, String>> REASONS =
            new WeakHashMap<>();

    private Unopened() {
    }

    /** Returns why the store of a cache could not be opened last; empty if it could be. */
    public static Optional<String> reason(GlobalConfiguration container, String cache) {
        return Optional.ofNullable(of(container).get(cache));
    }

    static void note(GlobalConfiguration container, String cache, String reason) {
        of(container).put(cache, reason);
    }

    static void strike(GlobalConfiguration container, String cache) {
        of(container).remove(cache);
    }

    private static Map<String, String> of(GlobalConfiguration container) {
        synchronized (REASONS) {
            return REASONS.computeIfAbsent(container, any -> new ConcurrentHashMap<>());
        }
    }
}
