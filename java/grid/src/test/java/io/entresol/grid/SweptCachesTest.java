package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.KilledStores;
import io.entresol.Store;
import io.entresol.StoreOptions;
import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.infinispan.configuration.ConfigurationManager;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.CustomStoreConfigurationBuilder;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.manager.impl.AbstractDelegatingEmbeddedCacheManager;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachemanagerlistener.annotation.CacheStarted;
import org.infinispan.notifications.cachemanagerlistener.event.CacheStartedEvent;
import org.infinispan.tasks.TaskContext;
import org.infinispan.util.concurrent.BlockingManager;
import org.junit.jupiter.api.Test;

/** Caches that are dropped, and the files of their stores. */
class SweptCachesTest extends SavingContainer {
    /** They stayed in memory, 16 MiB each: nobody opened the store any more, which is their end. */
    @Test
    void aCacheThatIsDroppedBeforeItsKilledStoreIsOpenedLeavesNoBuffersInMemory()
            throws Exception {
        Path file = folder.resolve("first/entresol/entresol.data");
        Path copy = folder.resolve("copy");
        Files.createDirectories(file.getParent());
        try (Store store = Store.open(StoreOptions.on(file)
                .capacity(64 << 20).memory(32 << 20))) {
            Files.copy(KilledStores.buffers(file), copy);
        }
        Path buffers = KilledStores.buffers(file);
        // A kill leaves them.
        Files.copy(copy, buffers);
        ConfigurationBuilder lacking = new ConfigurationBuilder();
        lacking.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .devices(folder.resolve("missing/device").toString()).recovery("true");
        Files.writeString(folder.resolve("caches.xml"),
                Endpoints.xml(Map.of("first", lacking.build())));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertTrue(Files.exists(buffers), "somebody opened the store");
            DeployedCaches.of(manager).orElseThrow().abandon("first");
            assertEquals(List.of(), saved());
            assertFalse(Files.exists(file), "the file of the store is there");
            assertFalse(Files.exists(buffers), "the buffers of the store are there");
        } finally {
            Files.deleteIfExists(buffers);
        }
    }

    /** Its file was removed while it was open, and what it had acknowledged was lost. */
    @Test
    void aCacheThatIsDeployedWhileItsNameIsSweptKeepsWhatItAcknowledges() throws Exception {
        try (DefaultCacheManager manager = container()) {
            manager.start();
            DeployedCaches deployed = DeployedCaches.of(manager).orElseThrow();
            AtomicReference<CompletableFuture<?>> deployment = new AtomicReference<>();
            EmbeddedCacheManager looked = new AbstractDelegatingEmbeddedCacheManager(manager) {
                @Override
                public Configuration getCacheConfiguration(String name) {
                    Configuration found = super.getCacheConfiguration(name);
                    if (found == null && deployment.get() == null) {
                        // Whoever looks acts on what is over by now, unless nothing can begin.
                        deployment.set(CompletableFuture.runAsync(() -> manager.administration()
                                .createCache(name, stored()).put("key", "value")));
                        TestGrid.await(() -> deployment.get().isDone() || isHeldBack(),
                                "the deployment neither ends nor waits");
                    }
                    return found;
                }
            };
            GlobalComponentRegistry components = GlobalComponentRegistry.of(manager);
            deployed.initialize(looked, components.getComponent(ConfigurationManager.class),
                    components.getComponent(BlockingManager.class));
            SweepTask task = new SweepTask();
            task.setTaskContext(new TaskContext().cacheManager(looked)
                    .addParameter("name", "first"));
            task.call();
            deployment.get().join();
            assertEquals("value", manager.getCache("first").get("key"));
        }
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertEquals("value", manager.getCache("first").get("key"));
        }
    }

    /** Whether an attempt waits for somebody who removes a store. */
    private static boolean isHeldBack() {
        return Thread.getAllStackTraces().entrySet().stream().anyMatch(each ->
                each.getKey().getState() == Thread.State.BLOCKED
                && Stream.of(each.getValue()).anyMatch(frame ->
                        frame.getClassName().equals(DeployedCaches.class.getName())
                        && frame.getMethodName().equals("begin")));
    }

    /** A node that comes to it in its start had it taken away, file and all. */
    @Test
    void aCacheThatIsBeingMadeIsNotSwept() throws Exception {
        ConfigurationBuilder slow = new ConfigurationBuilder();
        slow.persistence().addStore(CustomStoreConfigurationBuilder.class)
                .customStoreClass(SlowStore.class);
        Files.writeString(folder.resolve("caches.xml"),
                Endpoints.xml(Map.of("first", slow.build())));
        SlowStore.begin(folder.resolve("first/entresol/entresol.data"));
        try (DefaultCacheManager manager = container()) {
            CompletableFuture<Void> starting = CompletableFuture.runAsync(manager::start);
            SlowStore.starts.await();
            DeployedCaches deployed = DeployedCaches.of(manager).orElseThrow();
            CompletableFuture<Void> sweeping = CompletableFuture.runAsync(() ->
                    deployed.sweep("first"));
            TestGrid.await(sweeping::isDone, "who sweeps waits for who makes the cache");
            assertTrue(sweeping.isCompletedExceptionally(), "what is being made was dropped");
            SlowStore.end.countDown();
            starting.join();
            assertTrue(manager.isRunning("first"));
            assertTrue(Files.exists(SlowStore.file), "the file of its store is gone");
            assertEquals(List.of("first"), saved());
        }
    }

    /** It was started all the same, empty, and the cluster had it again. */
    @Test
    void aCacheThatIsDroppedBeforeItsTurnInTheStartDoesNotComeBack() throws Exception {
        ConfigurationBuilder recovering = new ConfigurationBuilder();
        recovering.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .capacity("64MiB").memory("32MiB").recovery("true");
        Files.writeString(folder.resolve("caches.xml"), Endpoints.xml(
                Map.of("first", recovering.build(), "second", recovering.build())));
        try (DefaultCacheManager manager = container()) {
            manager.addListener(new Dropping(manager));
            manager.start();
            assertTrue(manager.isRunning("first"));
            assertFalse(manager.cacheExists("second"), "what was dropped has come back");
            assertEquals(List.of("first"), saved());
        }
    }

    /** Both have the file name, and whoever was dropped took the other one's entries along. */
    @Test
    void aNameThatIsSweptLeavesTheFileOfAnotherThatIsAlikeAlone() throws Exception {
        Path file = folder.resolve("one_name/entresol/entresol.data");
        try (DefaultCacheManager manager = container()) {
            manager.start();
            DeployedCaches deployed = DeployedCaches.of(manager).orElseThrow();
            manager.administration().createCache("one name", stored()).put("key", "value");
            deployed.sweep("one_name");
            assertTrue(Files.exists(file), "the file of another cache is gone");
            manager.administration().removeCache("one name");
            Files.writeString(file.resolveSibling("entresol.withdrawn"), "its device failed\n");
            deployed.sweep("one name");
            assertFalse(Files.exists(file), "the file of the store is there");
            assertFalse(Files.exists(file.resolveSibling("entresol.withdrawn")));
        }
    }

    /** It stayed where the configuration had it, with all the room that it had been given. */
    @Test
    void theFileOfADroppedCacheThatNamesAFolderIsRemovedOnDemand() throws Exception {
        Path elsewhere = folder.resolve("elsewhere");
        ConfigurationBuilder stored = new ConfigurationBuilder();
        stored.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .path(elsewhere.toString()).capacity("64MiB").memory("32MiB");
        try (DefaultCacheManager manager = container()) {
            manager.start();
            DeployedCaches deployed = DeployedCaches.of(manager).orElseThrow();
            for (String name : List.of("first", "second")) {
                manager.administration().createCache(name, stored.build()).put("key", "value");
            }
            assertEquals(2, files(elsewhere));
            manager.administration().removeCache("first");
            deployed.sweep("first");
            assertEquals(1, files(elsewhere));
            assertEquals("value", manager.getCache("second").get("key"));
        }
    }

    private static long files(Path folder) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            return all.filter(Files::isRegularFile).count();
        }
    }

    /** Drops the second cache once the first one has started. */
    @Listener
    public static final class Dropping {
        private final DefaultCacheManager manager;

        Dropping(DefaultCacheManager manager) {
            this.manager = manager;
        }

        /** As Infinispan tells. */
        @CacheStarted
        public void started(CacheStartedEvent event) {
            if (event.getCacheName().equals("first")) {
                DeployedCaches.of(manager).orElseThrow().sweep("second");
            }
        }
    }
}
