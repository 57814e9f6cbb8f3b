package io.entresol.grid;

import io.entresol.Store;
import io.entresol.infinispan.UndeployedDevices;
import io.entresol.infinispan.recovery.WithdrawalMark;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.persistence.PersistenceUtil;
import org.infinispan.security.actions.SecurityActions;

/** What the store of a cache has in its node's folder; devices that were named are elsewhere. */
final class StoreFiles {
    private StoreFiles() {
    }

    /** The entries. */
    static Path of(EmbeddedCacheManager manager, String cache) {
        return folder(manager, cache).resolve("entresol.data");
    }

    /**
     * Removes all of it; the cache must not be open. With it go the write buffers, in memory, of a
     * store that was not closed: nobody opens it any more.
     */
    static void sweep(EmbeddedCacheManager manager, String cache) {
        Path folder = folder(manager, cache);
        // Names that differ in what a file's name cannot have, such as a space, have one folder.
        boolean isAnothers = manager.getCacheConfigurationNames().stream()
                .anyMatch(name -> !name.equals(cache) && folder(manager, name).equals(folder));
        if (isAnothers) {
            return;
        }
        GlobalConfiguration global = SecurityActions.getCacheManagerConfiguration(manager);
        // While it is there, so that it has the name by which it was noted.
        UndeployedDevices.of(global).strike(List.of(of(manager, cache)));
        try {
            Files.deleteIfExists(of(manager, cache));
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot remove the file of '" + cache + "'", failure);
        }
        WithdrawalMark.of(global, cache, of(manager, cache)).remove();
        Store.sweepBuffers(folder);
    }

    private static Path folder(EmbeddedCacheManager manager, String cache) {
        return PersistenceUtil.getQualifiedLocation(
                SecurityActions.getCacheManagerConfiguration(manager), null, cache, "entresol");
    }
}
