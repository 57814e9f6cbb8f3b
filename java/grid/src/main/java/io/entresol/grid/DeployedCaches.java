package io.entresol.grid;

import io.entresol.infinispan.EntresolStoreConfiguration;
import io.entresol.infinispan.recovery.Undeployed;
import io.entresol.infinispan.recovery.UndeployedException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletionStage;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.infinispan.Cache;
import org.infinispan.commons.CacheException;
import org.infinispan.commons.api.CacheContainerAdmin;
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
 * <p>What the cluster does not have was undeployed while this node was away, or deployed while the
 * others were, and is not made again. While the cluster comes up nobody has anything yet; then it is what others noted of
 * the caches that they undeployed that counts, and a cache that recovers asks for it as it waits.
 */
public final class DeployedCaches extends OverlayLocalConfigurationStorage {
    private static final Logger LOG = Logger.getLogger(DeployedCaches.class);

    @Override
    public Map<String, Configuration> loadAllCaches() {
        Map<String, Configuration> saved = new TreeMap<>(super.loadAllCaches());
        Set<String> there = deployed();
        if (there.isEmpty()) {
            for (String name : List.copyOf(saved.keySet())) {
                startIfItRecovers(name, saved);
            }
            return saved;
        }
        saved.keySet().removeIf(name -> {
            boolean gone = !there.contains(name);
            if (gone) {
                LOG.warnf("The cluster does not have cache %s, which this node had: it was"
                        + " undeployed while this node was away, or deployed while the others"
                        + " were. Its entries stay in the file of its store here: deploy the"
                        + " cache again to have them, or remove the file", name);
            }
            return gone;
        });
        return saved;
    }

    @Override
    public CompletionStage<Void> removeCache(String name,
            EnumSet<CacheContainerAdmin.AdminFlag> flags) {
        // First: once the cache is stopped nobody can tell its lineage.
        return blockingManager.runBlocking(() -> note(name), name)
                .thenCompose(noted -> super.removeCache(name, flags));
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

    private void note(String name) {
        try {
            Undeployed.note(cacheManager, name);
        } catch (UncheckedIOException failure) {
            // The other nodes note it as well.
            LOG.warnf(failure, "That cache %s was undeployed could not be noted", name);
        }
    }

    private void startIfItRecovers(String name, Map<String, Configuration> saved) {
        Configuration configuration = saved.get(name);
        boolean recovers = configuration.persistence().stores().stream().anyMatch(store ->
                store instanceof EntresolStoreConfiguration ours && ours.recovers());
        if (!recovers) {
            return;
        }
        SecurityActions.defineConfiguration(cacheManager, name, configuration);
        try {
            SecurityActions.getCache(cacheManager, name);
        } catch (CacheException failure) {
            if (Stream.iterate((Throwable) failure, Objects::nonNull, Throwable::getCause)
                    .noneMatch(UndeployedException.class::isInstance)) {
                throw failure;
            }
            LOG.infof("Cache %s was undeployed while this node was away", name);
            forget(name, saved);
        }
    }

    /** The file of its store last: with it goes what tells that the cache was undeployed. */
    private void forget(String name, Map<String, Configuration> saved) {
        removeCacheSync(name, EnumSet.noneOf(CacheContainerAdmin.AdminFlag.class));
        saved.remove(name);
        Path folder = Path.of(SecurityActions.getCacheManagerConfiguration(cacheManager)
                .globalState().sharedPersistentLocation());
        try {
            Path next = Files.writeString(folder.resolve("caches.xml.next"), Endpoints.xml(saved),
                    StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING,
                    StandardOpenOption.WRITE, StandardOpenOption.SYNC);
            Files.move(next, folder.resolve("caches.xml"), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot write " + folder.resolve("caches.xml"),
                    failure);
        }
        SweepTask.sweep(cacheManager, name);
    }
}
