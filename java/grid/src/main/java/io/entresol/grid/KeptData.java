package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import io.entresol.infinispan.UndeployedDevices;
import io.entresol.infinispan.recovery.SyncedFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.infinispan.Cache;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.EncodingConfiguration;
import org.infinispan.manager.EmbeddedCacheManager;

/**
 * The data of caches that were undeployed without them: a note of each such cache, in the folder of
 * its store's file. The next cache of the name has the entries, unless somebody drops them before.
 */
final class KeptData {
    /** The facts of a note: the encoding of keys and values, and whether devices were named. */
    static final String ENCODING = "encoding";
    static final String DEVICES = "devices";
    private static final String NOTE = "entresol.kept";

    private final EmbeddedCacheManager manager;
    /** The caches whose next removal leaves their stores as they are. */
    private final Set<String> leaving = ConcurrentHashMap.newKeySet();

    KeptData(EmbeddedCacheManager manager) {
        this.manager = manager;
    }

    /** Returns the note of a cache on this node; empty if nothing of the cache is kept. */
    static Optional<Json> facts(EmbeddedCacheManager manager, String cache) {
        Path note = note(manager, cache);
        try {
            return Files.exists(note) ? Optional.of(Json.read(Files.readString(note)))
                    : Optional.empty();
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot read " + note, failure);
        }
    }

    /** Returns how a cache encodes its keys and values. */
    static String encoding(Configuration configuration) {
        EncodingConfiguration encoding = configuration.encoding();
        return encoding.keyDataType().mediaType() + " for "
                + encoding.valueDataType().mediaType();
    }

    /** Has the next removal of the cache leave its data, and writes the note before. */
    void begin(String cache) {
        Configuration configuration = Privileged.getCacheConfiguration(manager, cache);
        if (configuration == null) {
            throw new IllegalStateException("cache '" + cache + "' is not there");
        }
        boolean named = UndeployedDevices.of(
                Privileged.getCacheManagerConfiguration(manager))
                .ownFiles(cache, configuration).isEmpty();
        Path note = note(manager, cache);
        try {
            SyncedFile.replace(note, Json.object(ENCODING, encoding(configuration),
                    DEVICES, named).toString());
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot write " + note, failure);
        }
        leaving.add(cache);
    }

    /** Returns whether the cache is being removed without its data. */
    boolean isLeaving(String cache) {
        return leaving.contains(cache);
    }

    /** Stops the cache, because the removal of an open cache empties its store. */
    void leave(String cache) {
        Cache<?, ?> open = manager.isRunning(cache) ? manager.getCache(cache, false) : null;
        if (open != null) {
            Privileged.stopCache(open);
        }
        Privileged.getRegistry(manager).removeCache(cache);
    }

    /** Ends a removal: the next one drops the data, unless it is told to keep them. */
    void left(String cache) {
        leaving.remove(cache);
    }

    /** Removes the note, since a cache has the data again, or they are dropped. */
    static void strike(EmbeddedCacheManager manager, String cache) {
        Path note = note(manager, cache);
        try {
            Files.deleteIfExists(note);
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot remove " + note, failure);
        }
    }

    private static Path note(EmbeddedCacheManager manager, String cache) {
        return StoreFiles.of(manager, cache).resolveSibling(NOTE);
    }
}
