package io.entresol.grid;

import io.entresol.Store;
import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.globalstate.ConfigurationStorage;
import org.infinispan.manager.DefaultCacheManager;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

/** A container that saves the caches which are deployed in it, in a folder of the test. */
abstract class SavingContainer {
    static final Set<String> NAMES = Set.of("first", "second", "third");

    @TempDir
    Path folder;

    /** Those of a device that took no writes, and that a test has removed since. */
    @AfterEach
    void sweepBuffers() {
        Store.sweepBuffers(folder);
    }

    DefaultCacheManager container() {
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder();
        global.globalState().enable().persistentLocation(folder.toString())
                .configurationStorage(ConfigurationStorage.CUSTOM)
                .configurationStorageSupplier(DeployedCaches::new);
        return new DefaultCacheManager(global.build(), false);
    }

    static Configuration stored() {
        ConfigurationBuilder stored = new ConfigurationBuilder();
        stored.persistence().passivation(false)
                .addStore(EntresolStoreConfigurationBuilder.class)
                .capacity("64MiB").memory("32MiB");
        return stored.build();
    }

    static Configuration configuration() {
        return new ConfigurationBuilder().build();
    }

    List<String> saved() {
        return saved("caches.xml");
    }

    List<String> saved(String file) {
        try {
            String text = Files.readString(folder.resolve(file));
            return NAMES.stream().filter(name -> text.contains("\"" + name + "\"")).sorted()
                    .toList();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
