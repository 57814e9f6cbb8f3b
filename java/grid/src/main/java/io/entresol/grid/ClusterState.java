package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.parsing.ConfigurationBuilderHolder;
import org.infinispan.globalstate.GlobalConfigurationManager;
import org.infinispan.globalstate.ScopedState;
import org.infinispan.globalstate.impl.GlobalConfigurationManagerImpl;
import org.infinispan.manager.EmbeddedCacheManager;

/** Infinispan's own cache with the list of the cluster's caches. */
final class ClusterState {
    /**
     * A write that tells the cluster of a cache ends once all nodes have opened its store: a large
     * one may take its time. Nodes that die meanwhile are waited for no longer.
     */
    private static final long STORES_MILLIS = TimeUnit.HOURS.toMillis(12);

    private ClusterState() {
    }

    /** Has writes wait for stores of any size; Infinispan waits for 15 seconds. */
    static void awaitStores(EmbeddedCacheManager manager) {
        Configuration state = cache(manager).getCacheConfiguration();
        state.clustering().remoteTimeout(STORES_MILLIS);
        // Whoever removes the cache meanwhile has its turn after that.
        state.locking().lockAcquisitionTimeout(STORES_MILLIS);
    }

    /** Of what is parsed anew: as it waits now, Infinispan would not let it be configured. */
    static void leaveOut(ConfigurationBuilderHolder holder) {
        holder.getNamedConfigurationBuilders()
                .remove(GlobalConfigurationManager.CONFIG_STATE_CACHE_NAME);
    }

    /** The caches that the cluster has; none while it comes up. */
    static Set<String> caches(EmbeddedCacheManager manager) {
        return cache(manager).keySet().stream()
                .filter(one -> one.getScope().equals(GlobalConfigurationManagerImpl.CACHE_SCOPE))
                .map(ScopedState::getName)
                .collect(Collectors.toSet());
    }

    private static Cache<ScopedState, Object> cache(EmbeddedCacheManager manager) {
        return Privileged.getCache(manager,
                GlobalConfigurationManager.CONFIG_STATE_CACHE_NAME);
    }
}
