package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.manager.EmbeddedCacheManager;

/** Asks every node for the figures of its flash stores: JSON text from each. */
public final class FlashTask extends GridTask {
    static final String NAME = "entresol-flash";
    /** In place of figures: why the node stopped owning entries of the cache. */
    static final String WITHDREW = "withdrew";

    /** As the server makes it. */
    public FlashTask() {
        super(NAME);
    }

    @Override
    String answer() {
        EmbeddedCacheManager manager = context().getCacheManager();
        Json caches = Json.object();
        for (NodeStores.Found found : NodeStores.of(manager)) {
            caches.set(found.name(), found.store() == null
                    ? Json.object(WITHDREW, found.withdrew())
                    : Json.read(found.figures().json()));
        }
        String node = Privileged.getCacheManagerConfiguration(manager).transport().nodeName();
        return Json.object("node", node, "caches", caches).toString();
    }
}
