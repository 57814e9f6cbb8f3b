package io.entresol.grid;

import io.entresol.infinispan.EntresolStoreConfiguration;
import io.entresol.infinispan.recovery.SyncedFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.infinispan.configuration.cache.Configuration;

/**
 * A file with a node's configurations by name: those of deployed caches, or of templates. A change
 * leaves all other configurations in the file, even those that a starting node has not reached. So
 * a node that is killed in its start has them when it starts again.
 */
final class SavedCaches {
    private final Path file;
    /** Replaced, never changed: nobody who looks waits for a sync. */
    private volatile Map<String, Configuration> caches;
    /** What the file has is not known since a write of it failed: the next change writes it. */
    private boolean unknown;

    /** What was read from the file. */
    SavedCaches(Path file, Map<String, Configuration> read) {
        this.file = file;
        this.caches = new TreeMap<>(read);
    }

    static boolean recovers(Configuration configuration) {
        return configuration.persistence().stores().stream().anyMatch(store ->
                store instanceof EntresolStoreConfiguration ours && ours.recovers());
    }

    Map<String, Configuration> all() {
        return new TreeMap<>(caches);
    }

    boolean has(String name) {
        return caches.containsKey(name);
    }

    synchronized void put(String name, Configuration configuration) {
        Map<String, Configuration> more = all();
        more.put(name, configuration);
        write(more);
    }

    synchronized void remove(String name) {
        Map<String, Configuration> less = all();
        if (less.remove(name) != null || unknown) {
            write(less);
        }
    }

    private void write(Map<String, Configuration> now) {
        unknown = true;
        try {
            SyncedFile.replace(file, Endpoints.xml(now));
            caches = now;
            unknown = false;
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot write " + file, failure);
        }
    }
}
