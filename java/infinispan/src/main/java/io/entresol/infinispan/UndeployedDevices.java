package io.entresol.infinispan;

import io.entresol.infinispan.recovery.SyncedFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.global.GlobalConfiguration;

/**
 * Devices that were named for caches that were undeployed on this node while their stores were not
 * open, as after the node withdrew: nobody could drop their entries, and these are nobody's, by
 * whatever cache the devices are opened next. A file in the global state.
 */
public final class UndeployedDevices {
    private static final String NAME = "entresol.undeployed.devices";

    /** Null where a node has no folder that lasts. */
    private final Path file;

    private UndeployedDevices(Path file) {
        this.file = file;
    }

    /** What a node knows. */
    public static UndeployedDevices of(GlobalConfiguration global) {
        return new UndeployedDevices(global.globalState().enabled()
                ? Path.of(global.globalState().persistentLocation(), NAME) : null);
    }

    /**
     * Notes those of a cache that is about to be removed and is not open, if any are named. What
     * any of the other caches names may have that one's entries.
     */
    public void note(Configuration cache, Collection<Configuration> others) {
        Set<String> othersNames = others.stream().flatMap(UndeployedDevices::stores)
                .flatMap(store -> listed(store).stream())
                .map(UndeployedDevices::name).collect(Collectors.toSet());
        change(true, stores(cache).flatMap(UndeployedDevices::devices)
                .filter(device -> !othersNames.contains(name(device))).toList());
    }

    /** Those on devices that were named. */
    private static Stream<EntresolStoreConfiguration> stores(Configuration cache) {
        return cache.persistence().stores().stream()
                .filter(EntresolStoreConfiguration.class::isInstance)
                .map(EntresolStoreConfiguration.class::cast)
                .filter(store -> store.get(EntresolStoreConfiguration.DEVICES) != null);
    }

    private static List<Path> listed(EntresolStoreConfiguration store) {
        return DeviceFiles.listed(store.get(EntresolStoreConfiguration.DEVICES));
    }

    /** Those that are there; all if none is, as it may come back. */
    private static Stream<Path> devices(EntresolStoreConfiguration store) {
        List<Path> listed = listed(store);
        List<Path> there = DeviceFiles.of(listed,
                store.get(EntresolStoreConfiguration.SELECTION).equals("stripe")).paths();
        return (there.isEmpty() ? listed : there).stream();
    }

    /** Whether what these have is nobody's. */
    boolean hasAny(Collection<Path> devices) {
        Set<String> known = read();
        return !known.isEmpty()
                && devices.stream().map(UndeployedDevices::name).anyMatch(known::contains);
    }

    /** They have none of those entries any more. */
    void strike(Collection<Path> devices) {
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
}
