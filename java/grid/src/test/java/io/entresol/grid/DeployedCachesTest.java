package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachemanagerlistener.annotation.CacheStarted;
import org.infinispan.notifications.cachemanagerlistener.annotation.ConfigurationChanged;
import org.infinispan.notifications.cachemanagerlistener.event.CacheStartedEvent;
import org.infinispan.notifications.cachemanagerlistener.event.ConfigurationChangedEvent;
import org.junit.jupiter.api.Test;

/** The caches that a container saves, as it starts. */
class DeployedCachesTest extends SavingContainer {
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
