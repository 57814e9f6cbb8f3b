package io.entresol.infinispan;

import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.entresol.Trusted;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.manager.ClusterExecutor;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.security.AuthorizationManager;
import org.infinispan.security.actions.SecurityActions;

/**
 * What a store and a node ask of their container for themselves, where users need permissions for
 * it. Infinispan's actions of these names help its own classes alone.
 */
public final class Privileged {
    private Privileged() {}

    /** The container's configuration. */
    public static GlobalConfiguration getCacheManagerConfiguration(EmbeddedCacheManager manager) {
        return Trusted.call(manager::getCacheManagerConfiguration);
    }

    /** The container's components. */
    public static GlobalComponentRegistry getRegistry(EmbeddedCacheManager manager) {
        return Trusted.call(() -> GlobalComponentRegistry.of(manager));
    }

    /** One of them. */
    public static <T> T getComponent(EmbeddedCacheManager manager, Class<T> type) {
        return getRegistry(manager).getComponent(type);
    }

    /** A cache's configuration; null: there is no such cache. */
    public static Configuration getCacheConfiguration(EmbeddedCacheManager manager, String name) {
        return Trusted.call(() -> manager.getCacheConfiguration(name));
    }

    /** Tells the container of a cache. */
    public static void defineConfiguration(EmbeddedCacheManager manager, String name,
            Configuration cache) {
        Trusted.call(() -> manager.defineConfiguration(name, cache));
    }

    /** A cache, which starts if it does not run. */
    public static <K, V> Cache<K, V> getCache(EmbeddedCacheManager manager, String name) {
        return Trusted.call(() -> manager.getCache(name));
    }

    /** The same; it asks for no permission. */
    public static <K, V> AdvancedCache<K, V> getUnwrappedCache(EmbeddedCacheManager manager,
            String name) {
        return getUnwrappedCache(getCache(manager, name));
    }

    /** The same of one that is there. */
    public static <K, V> AdvancedCache<K, V> getUnwrappedCache(Cache<K, V> cache) {
        return Trusted.call(() -> {
            Cache<K, V> unwrapped = SecurityActions.getUnwrappedCache(cache);
            return unwrapped.getAdvancedCache();
        });
    }

    /** Stops a cache. */
    public static void stopCache(Cache<?, ?> cache) {
        Trusted.call(() -> {
            cache.stop();
            return null;
        });
    }

    /** What carries out tasks on nodes. */
    public static ClusterExecutor getClusterExecutor(EmbeddedCacheManager manager) {
        return Trusted.call(manager::executor);
    }

    /** What a cache asks for permissions; null: nobody. */
    public static AuthorizationManager getAuthorizationManager(AdvancedCache<?, ?> cache) {
        return Trusted.call(cache::getAuthorizationManager);
    }
}
