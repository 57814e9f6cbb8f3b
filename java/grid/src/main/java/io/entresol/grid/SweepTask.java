package io.entresol.grid;

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
        if (manager.getCacheConfiguration(name) != null) {
            throw new IllegalStateException("cache '" + name + "' is in use");
        }
        StoreFiles.sweep(manager, name);
        return name;
    }
}
