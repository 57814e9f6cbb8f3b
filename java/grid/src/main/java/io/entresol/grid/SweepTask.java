package io.entresol.grid;

import java.util.Optional;
import org.infinispan.manager.EmbeddedCacheManager;

/**
 * Removes the file of a dropped cache's store on every node: Infinispan empties the store of such a
 * cache and never tells it that it is not needed any more. Devices that were named stay.
 */
public final class SweepTask extends GridTask {
    static final String NAME = "entresol-sweep";

    /** As the server makes it. */
    public SweepTask() {
        super(NAME);
    }

    @Override
    public String call() {
        String name = String.valueOf(context().getParameters().orElseThrow().get("name"));
        EmbeddedCacheManager manager = context().getCacheManager();
        Optional<DeployedCaches> caches = DeployedCaches.of(manager);
        caches.ifPresent(deployed -> deployed.abandon(name));
        if (caches.filter(deployed -> deployed.isStarting(name)).isPresent()) {
            // What starts it drops it, files and all.
            return name;
        }
        if (manager.getCacheConfiguration(name) != null) {
            throw new IllegalStateException("cache '" + name + "' is in use");
        }
        StoreFiles.sweep(manager, name);
        return name;
    }
}
