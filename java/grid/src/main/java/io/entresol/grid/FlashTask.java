package io.entresol.grid;

import io.entresol.infinispan.EntresolStore;
import io.entresol.infinispan.recovery.Withdrawal;
import java.util.Set;
import org.infinispan.Cache;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.persistence.manager.PersistenceManager;

/** Asks every node for the figures of its flash stores: JSON text from each. */
@SuppressWarnings("rawtypes")
public final class FlashTask extends GridTask {
    static final String NAME = "entresol-flash";
    /** In place of figures: why the node stopped owning entries of the cache. */
    static final String WITHDREW = "withdrew";

    /** As the server makes it. */
    public FlashTask() {
        super(NAME);
    }

    @Override
    public String call() {
        EmbeddedCacheManager manager = context().getCacheManager();
        Json caches = Json.object();
        for (String name : manager.getCacheNames()) {
            // One that stops meanwhile must not be started again.
            Cache<?, ?> cache = manager.isRunning(name) ? manager.getCache(name, false) : null;
            if (cache == null) {
                Withdrawal.reason(manager, name).ifPresent(reason ->
                        caches.set(name, Json.object(WITHDREW, reason)));
                continue;
            }
            Set<EntresolStore> stores = ComponentRegistry.of(cache)
                    .getComponent(PersistenceManager.class).getStores(EntresolStore.class);
            for (EntresolStore<?, ?> store : stores) {
                store.statistics().ifPresent(figures ->
                        caches.set(name, Json.read(figures.json())));
            }
        }
        String node = manager.getCacheManagerConfiguration().transport().nodeName();
        return Json.object("node", node, "caches", caches).toString();
    }
}
