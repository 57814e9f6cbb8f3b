package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import java.util.Map;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.manager.EmbeddedCacheManager;

/**
 * Configurations of caches in a grid with users. Infinispan asks for permissions at caches that
 * say so; here all do, by whichever way they were made. What is saved and what nodes tell each
 * other does not say it, so that nodes without users can read it.
 */
final class Secured {
    private Secured() {
    }

    /** The cache as the node of a container has it. */
    static Configuration in(EmbeddedCacheManager manager, Configuration cache) {
        return Privileged.getCacheManagerConfiguration(manager).security().authorization()
                .enabled() ? asking(cache) : without(cache);
    }

    /** The same of caches by their names. */
    static Map<String, Configuration> all(EmbeddedCacheManager manager,
            Map<String, Configuration> caches) {
        caches.replaceAll((name, cache) -> in(manager, cache));
        return caches;
    }

    /** Tells the container of the cache. */
    static void define(EmbeddedCacheManager manager, String name, Configuration cache) {
        Privileged.defineConfiguration(manager, name, in(manager, cache));
    }

    /** The cache as it asks for permissions; its own roles, if it names any, count. */
    static Configuration asking(Configuration cache) {
        return cache.isTemplate() ? cache : changed(cache, true);
    }

    /** The cache as it is saved. */
    static Configuration saved(Configuration cache) {
        return cache.security().authorization().roles().isEmpty() ? without(cache) : cache;
    }

    private static Configuration without(Configuration cache) {
        return cache.security().authorization().enabled() ? changed(cache, false) : cache;
    }

    private static Configuration changed(Configuration cache, boolean asks) {
        ConfigurationBuilder builder = new ConfigurationBuilder().read(cache);
        builder.security().authorization().enabled(asks);
        return builder.build();
    }
}
