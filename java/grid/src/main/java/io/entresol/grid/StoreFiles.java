package io.entresol.grid;

import io.entresol.Store;
import io.entresol.infinispan.recovery.WithdrawalMark;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
        try {
            Files.deleteIfExists(of(manager, cache));
            Files.deleteIfExists(folder(manager, cache).resolve(WithdrawalMark.NAME));
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot remove the file of '" + cache + "'", failure);
        }
        Store.sweepBuffers(folder(manager, cache));
    }

    private static Path folder(EmbeddedCacheManager manager, String cache) {
        return PersistenceUtil.getQualifiedLocation(
                SecurityActions.getCacheManagerConfiguration(manager), null,
                PersistenceUtil.sanitizedCacheName(cache), "entresol");
    }
}
