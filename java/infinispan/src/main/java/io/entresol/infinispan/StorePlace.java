package io.entresol.infinispan;

import io.entresol.Compression;
import io.entresol.Durability;
import io.entresol.Store;
import io.entresol.StoreException;
import io.entresol.StoreOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Executor;
import org.infinispan.commons.util.ByteQuantity;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.persistence.PersistenceUtil;
import org.infinispan.persistence.spi.PersistenceException;

/** Where the store of a cache is on this node: devices that were named, or a file of its own. */
final class StorePlace {
    private final GlobalConfiguration global;
    private final EntresolStoreConfiguration configuration;
    private final String cache;
    private final List<Path> paths;
    private final boolean striped;
    private final boolean named;

    StorePlace(GlobalConfiguration global, String cache,
            EntresolStoreConfiguration configuration) {
        this.global = global;
        this.configuration = configuration;
        this.cache = cache;
        String devices = configuration.get(EntresolStoreConfiguration.DEVICES);
        this.named = devices != null;
        this.paths = named ? DeviceFiles.listed(devices) : List.of(ownFolder(global, cache,
                configuration.get(EntresolStoreConfiguration.PATH)).resolve("entresol.data"));
        this.striped = configuration.get(EntresolStoreConfiguration.SELECTION).equals("stripe");
    }

    /**
     * Opens the store, or makes it; what follows its outcomes runs in {@code executor}. Whoever
     * fails says on what, and what to do.
     */
    Store open(Executor executor) {
        StoreOptions options = named
                ? StoreOptions.onDevices(configuration.get(EntresolStoreConfiguration.DEVICES))
                : ownOptions();
        if (!named) {
            makeFolder();
        }
        String compression = configuration.get(EntresolStoreConfiguration.COMPRESSION);
        try {
            Store store = Store.open((striped ? options.striped() : options)
                    .capacity(Math.max(size(EntresolStoreConfiguration.CAPACITY), former()))
                    .memory(size(EntresolStoreConfiguration.MEMORY))
                    .durability(Durability.parse(
                            configuration.get(EntresolStoreConfiguration.DURABILITY)))
                    .compression(Compression.valueOf(compression.toUpperCase(Locale.ROOT)))
                    .executor(executor));
            Unopened.strike(global, cache);
            return store;
        } catch (StoreException failure) {
            String reason = "cache " + cache + ": the store on " + this + " cannot be opened: "
                    + failure.getMessage() + nextStep(failure.kind());
            Unopened.note(global, cache, reason);
            throw new PersistenceException(reason, failure);
        }
    }

    /** What is open now. */
    DeviceFiles files() {
        return DeviceFiles.of(paths, striped);
    }

    /** All that it may be on. */
    List<Path> listed() {
        return paths;
    }

    /** Those that are there; all if none is, as it may come back. */
    List<Path> present() {
        List<Path> there = files().paths();
        return there.isEmpty() ? paths : there;
    }

    /** A file of the cache's own; empty if devices were named. */
    Optional<Path> ownFile() {
        return named ? Optional.empty() : Optional.of(paths.get(0));
    }

    @Override
    public String toString() {
        return String.join(", ", paths.stream().map(Path::toString).toList());
    }

    private StoreOptions ownOptions() {
        try {
            return StoreOptions.on(paths.get(0));
        } catch (IllegalArgumentException mistake) {
            throw new PersistenceException("cache " + cache + ": its store cannot be on "
                    + mistake.getMessage(), mistake);
        }
    }

    private void makeFolder() {
        Path folder = paths.get(0).getParent();
        try {
            Files.createDirectories(folder);
        } catch (IOException failure) {
            throw new UncheckedIOException("cache " + cache + ": cannot make the folder " + folder
                    + " of its store: see that its disk is there and can be written", failure);
        }
    }

    /** The size of a file of the cache's own: a store does not shrink, whatever is configured. */
    private long former() {
        return named ? 0 : paths.get(0).toFile().length();
    }

    private long size(
            org.infinispan.commons.configuration.attributes.AttributeDefinition<String> attribute) {
        return ByteQuantity.parse(configuration.get(attribute));
    }

    private String nextStep(StoreException.Kind kind) {
        return switch (kind) {
            case CORRUPT, INCOMPATIBLE -> ". If nothing on it is wanted, " + emptying()
                    + " and start the cache again: a cluster gives this node its entries";
            case FULL, IO, DEVICE, POISONED -> ". The file system is " + fileSystems()
                    + ": see that the device is there, has room, can be written and is used by"
                    + " nobody else, or replace it; then start the cache again";
            default -> "";
        };
    }

    /** Returns the file systems of its paths, each by mount point and device. */
    private String fileSystems() {
        Set<String> names = new LinkedHashSet<>();
        for (Path path : paths) {
            Path folder = path.toAbsolutePath().getParent();
            try {
                names.add(Files.getFileStore(folder).toString());
            } catch (IOException unknown) {
                names.add("that of " + folder);
            }
        }
        return String.join(", ", names);
    }

    /** How people have a store begin anew. */
    String emptying() {
        return named ? "make it empty (a file: delete it; a device: blkdiscard -z)"
                : "delete the file";
    }

    private static Path ownFolder(GlobalConfiguration global, String cache, String path) {
        return PersistenceUtil.getQualifiedLocation(global, path, cache, "entresol");
    }
}
