package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.globalstate.ConfigurationStorage;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachemanagerlistener.annotation.CacheStarted;
import org.infinispan.notifications.cachemanagerlistener.annotation.ConfigurationChanged;
import org.infinispan.notifications.cachemanagerlistener.event.CacheStartedEvent;
import org.infinispan.notifications.cachemanagerlistener.event.ConfigurationChangedEvent;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a container saves of caches. */
class DeployedCachesTest {
    private static final Set<String> NAMES = Set.of("first", "second", "third");

    @TempDir
    Path folder;

    /**
     * The file was written anew with each cache that was started, with those alone that were: a
     * node that was killed meanwhile had forgotten the others.
     */
    @Test
    void theFileHasAllDeployedCachesAtEachMomentOfAStart() throws Exception {
        try (DefaultCacheManager manager = container()) {
            manager.start();
            NAMES.forEach(name -> manager.administration().createCache(name, configuration()));
        }
        Saved saved = new Saved();
        try (DefaultCacheManager manager = container()) {
            manager.addListener(saved);
            manager.start();
            assertEquals(NAMES, saved.whileStarting.keySet());
            manager.administration().removeCache("second");
            assertEquals(List.of("first", "third"), saved());
        }
        saved.whileStarting.forEach((name, caches) -> assertEquals(
                List.of("first", "second", "third"), caches, "as " + name + " starts"));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertTrue(manager.isRunning("first") && manager.isRunning("third"));
            assertEquals(List.of("first", "third"), saved());
        }
    }

    /** As it was with the file of caches; nobody synced it either. */
    @Test
    void theFileHasAllTemplatesAtEachMomentOfAStart() throws Exception {
        try (DefaultCacheManager manager = container()) {
            manager.start();
            NAMES.forEach(name -> manager.administration().createTemplate(name,
                    new ConfigurationBuilder().template(true).build()));
        }
        Templates templates = new Templates();
        try (DefaultCacheManager manager = container()) {
            manager.addListener(templates);
            manager.start();
            assertEquals(NAMES, templates.whileStarting.keySet());
            manager.administration().removeTemplate("second");
            assertEquals(List.of("first", "third"), saved("templates.xml"));
            manager.administration().createCache("made", "third");
        }
        templates.whileStarting.forEach((name, there) -> assertEquals(
                List.of("first", "second", "third"), there, "as " + name + " starts"));
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(List.of(), files.map(file -> file.getFileName().toString())
                    .filter(name -> name.startsWith("templates") && !name.equals("templates.xml"))
                    .toList());
        }
    }

    /** The whole container did not start, although it serves where the cluster has the cache. */
    @Test
    void aCacheThatCannotRecoverStaysSavedAndHindersNoOther() throws Exception {
        ConfigurationBuilder lacking = new ConfigurationBuilder();
        lacking.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .devices(folder.resolve("missing/device").toString()).recovery("true");
        Files.writeString(folder.resolve("caches.xml"), Endpoints.xml(
                Map.of("first", lacking.build(), "second", configuration())));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertTrue(manager.isRunning("second"));
            assertFalse(manager.isRunning("first"));
            manager.administration().createCache("third", configuration());
            assertEquals(List.of("first", "second", "third"), saved());
        }
    }

    /** A cache that does not start stayed among the deployed, and its name was taken. */
    @Test
    void aCacheThatIsTakenBackLeavesNothingButWhatWasThereBefore() throws Exception {
        ConfigurationBuilder stored = new ConfigurationBuilder();
        stored.persistence().passivation(false)
                .addStore(EntresolStoreConfigurationBuilder.class)
                .capacity("64MiB").memory("32MiB");
        Path former = folder.resolve("first/entresol/entresol.data");
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", stored.build()).put("key", "value");
        }
        Files.delete(folder.resolve("caches.xml"));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            takeBack(manager, "first", stored.build());
            assertTrue(Files.exists(former), "the entries of the former cache are gone");
            takeBack(manager, "second", stored.build());
            assertFalse(Files.exists(folder.resolve("second/entresol/entresol.data")));
            assertEquals("value", manager.administration().createCache("first", stored.build())
                    .get("key"));
            // What was deployed in between is nobody's any more.
            manager.administration().removeCache("first");
            takeBack(manager, "first", stored.build());
            manager.administration().createCache("second", configuration());
            assertEquals(List.of("second"), saved());
        }
    }

    private static void takeBack(DefaultCacheManager manager, String name,
            Configuration configuration) {
        manager.administration().createCache(name, configuration);
        DeployedCaches.of(manager).orElseThrow().withdraw(name);
        assertFalse(manager.isRunning(name));
        manager.administration().removeCache(name);
        assertFalse(manager.cacheExists(name));
    }

    private DefaultCacheManager container() {
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder();
        global.globalState().enable().persistentLocation(folder.toString())
                .configurationStorage(ConfigurationStorage.CUSTOM)
                .configurationStorageSupplier(DeployedCaches::new);
        return new DefaultCacheManager(global.build(), false);
    }

    private static Configuration configuration() {
        return new ConfigurationBuilder().build();
    }

    private List<String> saved() {
        return saved("caches.xml");
    }

    private List<String> saved(String file) {
        try {
            String text = Files.readString(folder.resolve(file));
            return NAMES.stream().filter(name -> text.contains("\"" + name + "\"")).sorted()
                    .toList();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** What the file has as each of the caches has started. */
    @Listener
    public final class Saved {
        private final Map<String, List<String>> whileStarting = new ConcurrentHashMap<>();

        /** As Infinispan tells. */
        @CacheStarted
        public void started(CacheStartedEvent event) {
            if (NAMES.contains(event.getCacheName())) {
                whileStarting.put(event.getCacheName(), saved());
            }
        }
    }

    /** What the file has as each of the templates is made again. */
    @Listener
    public final class Templates {
        private final Map<String, List<String>> whileStarting = new ConcurrentHashMap<>();

        /** As Infinispan tells. */
        @ConfigurationChanged
        public void changed(ConfigurationChangedEvent event) {
            if (event.getConfigurationEntityType().equals("template")) {
                whileStarting.putIfAbsent(event.getConfigurationEntityName(),
                        saved("templates.xml"));
            }
        }
    }
}
