package io.entresol.infinispan;

import io.entresol.Store;
import io.entresol.StoreException;
import io.entresol.infinispan.recovery.SyncedFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.util.logging.Log;
import org.infinispan.util.logging.LogFactory;

/**
 * A list of devices and files whose entries belong to no cache any more. Their caches were
 * undeployed on this node while the entries could not be dropped, because the stores were not open,
 * for example after the node withdrew, or took no writes. The next cache on such a device must drop
 * the entries. The list is a file in the global state.
 */
public final class UndeployedDevices {
    private static final Log LOG = LogFactory.getLog(UndeployedDevices.class);
    private static final String NAME = "entresol.undeployed.devices";

    private final GlobalConfiguration global;
    /** Null where a node has no folder that lasts. */
    private final Path file;

    private UndeployedDevices(GlobalConfiguration global) {
        this.global = global;
        this.file = global.globalState().enabled()
                ? Path.of(global.globalState().persistentLocation(), NAME) : null;
    }

    /** What a node knows. */
    public static UndeployedDevices of(GlobalConfiguration global) {
        return new UndeployedDevices(global);
    }

    /**
     * Notes those of a cache that is about to be removed and is not open. What any of the other
     * caches names may have that one's entries.
     *
     * @param cache its name
     * @param others by their names
     */
    public void note(String cache, Configuration configuration,
            Map<String, Configuration> others) {
        Set<String> othersNames = others.entrySet().stream()
                .flatMap(other -> places(other.getKey(), other.getValue()))
                .flatMap(place -> place.listed().stream())
                .map(UndeployedDevices::name).collect(Collectors.toSet());
        change(true, places(cache, configuration).flatMap(place -> place.present().stream())
                .filter(device -> !othersNames.contains(name(device))).toList());
    }

    /** The files of a cache's own, as it is configured; devices that were named are none. */
    public List<Path> ownFiles(String cache, Configuration configuration) {
        return places(cache, configuration).flatMap(place -> place.ownFile().stream()).toList();
    }

    private Stream<StorePlace> places(String cache, Configuration configuration) {
        return configuration.persistence().stores().stream()
                .filter(EntresolStoreConfiguration.class::isInstance)
                .map(store -> new StorePlace(global, cache, (EntresolStoreConfiguration) store));
    }

    /** Notes those of a store that is open, whose entries cannot be dropped. */
    void note(Collection<Path> devices) throws IOException {
        if (file == null) {
            throw new IOException("this node has no global state to note it in");
        }
        change(true, devices);
    }

    /** Whether what these have is nobody's. */
    boolean hasAny(Collection<Path> devices) {
        Set<String> known = read();
        return !known.isEmpty()
                && devices.stream().map(UndeployedDevices::name).anyMatch(known::contains);
    }

    /**
     * Removes the write buffers of those that are gone. A store that took no writes leaves them in
     * memory for its next opening, and nobody wants what it had, should the device come back.
     */
    void sweepGone() {
        read().stream().map(Path::of).forEach(UndeployedDevices::sweepIfGone);
    }

    /** The same of one whose entries do not count, as its node withdrew. */
    static void sweepIfGone(Path device) {
        if (Files.notExists(device)) {
            try {
                Store.sweepBuffers(resolved(device));
            } catch (StoreException failure) {
                // They take memory, and hinder nobody.
                LOG.warnf("The write buffers of %s, which is gone, stay: %s", device,
                        failure.getMessage());
            }
        }
    }

    /** They have none of those entries any more. */
    public void strike(Collection<Path> devices) {
        change(false, devices);
    }

    private void change(boolean added, Collection<Path> devices) {
        if (file == null || devices.isEmpty()) {
            return;
        }
        synchronized (UndeployedDevices.class) {
            Set<String> known = read();
            List<String> names = devices.stream().map(UndeployedDevices::name).toList();
            if (added ? known.addAll(names) : known.removeAll(names)) {
                try {
                    SyncedFile.replace(file, String.join("\n", known) + "\n");
                } catch (IOException failure) {
                    throw new UncheckedIOException("cannot write " + file, failure);
                }
            }
        }
    }

    private Set<String> read() {
        try {
            return new LinkedHashSet<>(file == null || !Files.exists(file) ? List.of()
                    : Files.readAllLines(file, StandardCharsets.UTF_8));
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot read " + file, failure);
        }
    }

    /** The same by whichever of its paths a device is named; of one that is gone, that path. */
    private static String name(Path device) {
        try {
            return device.toRealPath().toString();
        } catch (IOException gone) {
            return device.toAbsolutePath().normalize().toString();
        }
    }

    /** As the store knew one that is gone: without links on the way to it. */
    private static Path resolved(Path device) {
        Path full = device.toAbsolutePath().normalize();
        Path parent = full.getParent();
        try {
            return parent == null ? full : parent.toRealPath().resolve(full.getFileName());
        } catch (IOException gone) {
            return full;
        }
    }
}
