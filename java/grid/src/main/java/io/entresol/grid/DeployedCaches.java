package io.entresol.grid;

import io.entresol.infinispan.EntresolStoreConfiguration;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.globalstate.GlobalConfigurationManager;
import org.infinispan.globalstate.ScopedState;
import org.infinispan.globalstate.impl.GlobalConfigurationManagerImpl;
import org.infinispan.globalstate.impl.OverlayLocalConfigurationStorage;
import org.infinispan.security.actions.SecurityActions;
import org.jboss.logging.Logger;

/**
 * What a node saves of deployed caches. At its start Infinispan makes them one after another, each
 * under a lock of the whole cluster: a cache that recovers waits in its start for other nodes, and
 * these would wait for the lock. So those are started here, before anybody takes it, in the order
 * of their names, which is the same on all nodes; Infinispan then finds them running.
 *
 * <p>What the cluster does not have any more was undeployed while this node was away, and is not
 * made again.
 */
public final class DeployedCaches extends OverlayLocalConfigurationStorage {
    private static final Logger LOG = Logger.getLogger(DeployedCaches.class);

    @Override
    public Map<String, Configuration> loadAllCaches() {
        Map<String, Configuration> saved = new TreeMap<>(super.loadAllCaches());
        Set<String> there = deployed();
        if (there.isEmpty()) {
            saved.forEach(this::startIfItRecovers);
            return saved;
        }
        saved.keySet().removeIf(name -> {
            boolean gone = !there.contains(name);
            if (gone) {
                LOG.infof("Cache %s was undeployed while this node was away", name);
            }
            return gone;
        });
        return saved;
    }

    /** The caches that the cluster has; none while it comes up. */
    private Set<String> deployed() {
        Cache<ScopedState, Object> state = SecurityActions.getCache(
                cacheManager, GlobalConfigurationManager.CONFIG_STATE_CACHE_NAME);
        return state.keySet().stream()
                .filter(one -> one.getScope().equals(GlobalConfigurationManagerImpl.CACHE_SCOPE))
                .map(ScopedState::getName)
                .collect(Collectors.toSet());
    }

    private void startIfItRecovers(String name, Configuration configuration) {
        boolean recovers = configuration.persistence().stores().stream().anyMatch(store ->
                store instanceof EntresolStoreConfiguration ours && ours.recovers());
        if (recovers) {
            SecurityActions.defineConfiguration(cacheManager, name, configuration);
            SecurityActions.getCache(cacheManager, name);
        }
    }
}
