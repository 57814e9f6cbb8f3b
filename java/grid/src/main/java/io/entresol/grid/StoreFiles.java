package io.entresol.grid;

import io.entresol.Store;
import io.entresol.infinispan.Privileged;
import io.entresol.infinispan.UndeployedDevices;
import io.entresol.infinispan.recovery.WithdrawalMark;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.persistence.PersistenceUtil;

/**
 * The files of a cache's store in its node's folder, or in the folder that its configuration names.
 * Named devices do not count.
 */
final class StoreFiles {
    private StoreFiles() {
    }

    /** The entries. */
    static Path of(EmbeddedCacheManager manager, String cache) {
        return folder(manager, cache).resolve("entresol.data");
    }

    /** The same, and what it has where its configuration, which is there still, names a folder. */
    static Set<Path> configured(EmbeddedCacheManager manager, String cache) {
        Configuration configuration = Privileged.getCacheConfiguration(manager, cache);
        Set<Path> files = new HashSet<>(Set.of(of(manager, cache)));
        if (configuration != null) {
            files.addAll(UndeployedDevices.of(Privileged.getCacheManagerConfiguration(manager))
                    .ownFiles(cache, configuration));
        }
        return files;
    }

    /**
     * Notes the devices of a cache that is about to be removed and is not open: their entries do
     * not count then. The removal of an open cache empties its store.
     */
    static void noteDevices(EmbeddedCacheManager manager, String cache) {
        Configuration configuration = Privileged.getCacheConfiguration(manager, cache);
        if (configuration != null && !manager.isRunning(cache)) {
            Map<String, Configuration> others = new HashMap<>();
            for (String other : manager.getCacheConfigurationNames()) {
                Configuration its = Privileged.getCacheConfiguration(manager, other);
                if (its != null && !other.equals(cache)) {
                    others.put(other, its);
                }
            }
            UndeployedDevices.of(Privileged.getCacheManagerConfiguration(manager))
                    .note(cache, configuration, others);
        }
    }

    /**
     * Removes them; the cache must not be open. With them go the write buffers, in memory, of a
     * store that was not closed: nobody opens it any more.
     */
    static void sweep(EmbeddedCacheManager manager, String cache, Set<Path> files) {
        KeptData.strike(manager, cache);
        // Names that differ in what a file's name cannot have, such as a space, have one folder.
        Set<Path> others = manager.getCacheConfigurationNames().stream()
                .filter(name -> !name.equals(cache))
                .flatMap(name -> configured(manager, name).stream()).collect(Collectors.toSet());
        GlobalConfiguration global = Privileged.getCacheManagerConfiguration(manager);
        for (Path file : files) {
            if (!others.contains(file)) {
                remove(global, cache, file);
            }
        }
    }

    private static void remove(GlobalConfiguration global, String cache, Path file) {
        // While it is there, so that it has the name by which it was noted.
        UndeployedDevices.of(global).strike(List.of(file));
        try {
            Files.deleteIfExists(file);
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot remove the file of '" + cache + "'", failure);
        }
        WithdrawalMark.of(global, cache, file).remove();
        Store.sweepBuffers(file.getParent());
    }

    private static Path folder(EmbeddedCacheManager manager, String cache) {
        return PersistenceUtil.getQualifiedLocation(
                Privileged.getCacheManagerConfiguration(manager), null, cache, "entresol");
    }
}
