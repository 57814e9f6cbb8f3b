package io.entresol.jdbc;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.manager.EmbeddedCacheManager;

/**
 * The containers of this process that connections reach: containers that the program named, and
 * containers of configuration files, which start with their first connection and stop with their
 * last.
 */
final class Containers {
    private static final Map<String, EmbeddedCacheManager> NAMED = new ConcurrentHashMap<>();
    private static final Map<Path, Started> STARTED = new HashMap<>();

    private Containers() {}

    static void register(String name, EmbeddedCacheManager manager) {
        EmbeddedCacheManager other = NAMED.putIfAbsent(name, manager);
        if (other != null && other != manager) {
            throw new IllegalArgumentException(
                    "another container has the name " + name + " already");
        }
    }

    static void unregister(String name) {
        NAMED.remove(name);
    }

    static EmbeddedCacheManager named(String name) throws SQLException {
        EmbeddedCacheManager manager = NAMED.get(name);
        if (manager == null) {
            throw new SQLException("container " + name + " is not there; named in this process: "
                    + new TreeMap<>(NAMED).keySet());
        }
        return manager;
    }

    /** The container of a file, for one connection more. */
    static EmbeddedCacheManager start(Path file) throws SQLException {
        synchronized (STARTED) {
            try {
                Path real = file.toRealPath();
                Started started = STARTED.get(real);
                if (started == null) {
                    try (InputStream configuration = Files.newInputStream(real)) {
                        started = new Started(new DefaultCacheManager(configuration, true));
                    }
                    STARTED.put(real, started);
                }
                started.connections++;
                return started.manager;
            } catch (IOException | RuntimeException failure) {
                throw new SQLException("configuration " + file + " cannot be read; expected a file "
                        + "that configures an Infinispan cache container: " + failure, failure);
            }
        }
    }

    /** One connection less. */
    static void stop(EmbeddedCacheManager manager) {
        synchronized (STARTED) {
            STARTED.values().removeIf(started -> {
                if (started.manager != manager || --started.connections > 0) {
                    return false;
                }
                manager.stop();
                return true;
            });
        }
    }

    private static final class Started {
        private final EmbeddedCacheManager manager;
        private int connections;

        Started(EmbeddedCacheManager manager) {
            this.manager = manager;
        }
    }
}
