package io.entresol.jdbc;

import io.entresol.infinispan.ContainerModule;
import io.entresol.jdbc.internal.index.ClusterIndexing;
import io.entresol.jdbc.internal.index.EndedEntries;
import io.entresol.jdbc.internal.index.ForeignSegments;
import io.entresol.jdbc.internal.index.IndexRebuild;
import io.entresol.jdbc.internal.index.IndexState;
import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.IndexStartupMode;
import org.infinispan.configuration.cache.IndexStorage;
import org.infinispan.expiration.impl.InternalExpirationManager;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.factories.impl.BasicComponentRegistry;
import org.infinispan.interceptors.AsyncInterceptorChain;
import org.infinispan.persistence.manager.PersistenceManager;
import org.infinispan.query.backend.QueryInterceptor;
import org.infinispan.query.mapper.mapping.SearchMapping;

/**
 * The part of Infinispan that rebuilds indexes in memory from entries on flash, before their cache
 * serves anybody. Infinispan finds it by its service file. Not for other uses.
 */
public final class IndexModule extends ContainerModule {
    /** For the service loader. */
    public IndexModule() {
        super("entresol-jdbc", "core", "query", "server-core");
    }

    /**
     * Rebuilds before the node joins the cache's cluster: nobody has asked it anything by then, and
     * nothing comes from other nodes. Infinispan tells of a cache's start later, and not at all
     * where the cluster waited for its members.
     */
    @Override
    public void cacheStarting(ComponentRegistry registry, Configuration configuration,
            String name) {
        if (!configuration.indexing().enabled()
                || registry.getComponent(SearchMapping.class) == null) {
            return;
        }
        AdvancedCache<?, ?> cache = registry.getComponent(Cache.class).getAdvancedCache();
        SearchMapping mapping = registry.getComponent(SearchMapping.class);
        AsyncInterceptorChain chain = registry.getComponent(AsyncInterceptorChain.class);
        if (!configuration.clustering().cacheMode().isClustered()) {
            followExpiration(registry, new EndedEntries(cache, mapping));
        } else if (chain.findInterceptorWithClass(ClusterIndexing.class) == null) {
            chain.addInterceptorBefore(new ClusterIndexing(cache), QueryInterceptor.class);
        }
        if (!isLost(configuration)) {
            registry.registerComponent(new IndexState(IndexState.Stage.COMPLETE),
                    IndexState.class);
        } else if (configuration.indexing().startupMode() != IndexStartupMode.NONE) {
            registry.registerComponent(new IndexState(IndexState.Stage.UNKNOWN), IndexState.class);
        } else {
            IndexState state = new IndexState(IndexState.Stage.REBUILT);
            registry.registerComponent(state, IndexState.class);
            // Its stores, and what decides what they are worth.
            registry.getComponent(BasicComponentRegistry.class)
                    .getComponent(PersistenceManager.class).running();
            new IndexRebuild(cache, mapping, state).run();
            if (configuration.clustering().cacheMode().isClustered()) {
                cache.addListener(new ForeignSegments(cache, mapping));
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static void followExpiration(ComponentRegistry registry, EndedEntries ended) {
        registry.getComponent(InternalExpirationManager.class).addInternalListener(ended);
    }

    /** Whether entries outlive their index. */
    private static boolean isLost(Configuration configuration) {
        return configuration.indexing().storage() == IndexStorage.LOCAL_HEAP
                && configuration.persistence().stores().stream()
                        .anyMatch(store -> !store.purgeOnStartup());
    }
}
