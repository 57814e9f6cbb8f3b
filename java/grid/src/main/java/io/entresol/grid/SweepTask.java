package io.entresol.grid;

import io.entresol.infinispan.recovery.WithdrawalMark;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.persistence.PersistenceUtil;
import org.infinispan.security.actions.SecurityActions;

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
        sweep(manager, name);
        return name;
    }

    /** On this node, whose cache must not be open. */
    static void sweep(EmbeddedCacheManager manager, String name) {
        Path folder = PersistenceUtil.getQualifiedLocation(
                SecurityActions.getCacheManagerConfiguration(manager), null,
                PersistenceUtil.sanitizedCacheName(name), "entresol");
        try {
            Files.deleteIfExists(folder.resolve("entresol.data"));
            Files.deleteIfExists(folder.resolve(WithdrawalMark.NAME));
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot remove the file of '" + name + "'", failure);
        }
    }
}
