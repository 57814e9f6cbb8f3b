package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.KilledStores;
import io.entresol.Store;
import io.entresol.StoreOptions;
import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.infinispan.Cache;
import org.infinispan.configuration.ConfigurationManager;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.CustomStoreConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.globalstate.ConfigurationStorage;
import org.infinispan.globalstate.GlobalConfigurationManager;
import org.infinispan.globalstate.ScopedState;
import org.infinispan.globalstate.impl.GlobalConfigurationManagerImpl;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.manager.impl.AbstractDelegatingEmbeddedCacheManager;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachemanagerlistener.annotation.CacheStarted;
import org.infinispan.notifications.cachemanagerlistener.annotation.ConfigurationChanged;
import org.infinispan.notifications.cachemanagerlistener.event.CacheStartedEvent;
import org.infinispan.notifications.cachemanagerlistener.event.ConfigurationChangedEvent;
import org.infinispan.tasks.TaskContext;
import org.infinispan.util.concurrent.BlockingManager;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The caches that a container saves. */
class DeployedCachesTest {
    private static final Set<String> NAMES = Set.of("first", "second", "third");

    @TempDir
    Path folder;

    /** Those of a device that took no writes, and that a test has removed since. */
    @AfterEach
    void sweepBuffers() {
        Store.sweepBuffers(folder);
    }

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

    /** A cache that does not start stayed among the deployed, and its name was taken. */
    @Test
    void aCacheThatIsTakenBackLeavesNothingButWhatWasThereBefore() throws Exception {
        Path former = folder.resolve("first/entresol/entresol.data");
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", stored()).put("key", "value");
        }
        Files.delete(folder.resolve("caches.xml"));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            takeBack(manager, "first", stored());
            assertTrue(Files.exists(former), "the entries of the former cache are gone");
            takeBack(manager, "second", stored());
            assertFalse(Files.exists(folder.resolve("second/entresol/entresol.data")));
            assertEquals("value", manager.administration().createCache("first", stored())
                    .get("key"));
            // What was deployed in between is nobody's any more.
            manager.administration().removeCache("first");
            takeBack(manager, "first", stored());
            manager.administration().createCache("second", configuration());
            assertEquals(List.of("second"), saved());
        }
    }

    /** It had made nothing when the deployment was undone, and kept the file that it made then. */
    @Test
    void aCacheThatIsTakenBackWhileItIsMadeLeavesNothing() throws Exception {
        ConfigurationBuilder slow = new ConfigurationBuilder();
        slow.persistence().addStore(CustomStoreConfigurationBuilder.class)
                .customStoreClass(SlowStore.class);
        SlowStore.begin(folder.resolve("first/entresol/entresol.data"));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            CompletableFuture<Void> making = CompletableFuture.runAsync(() ->
                    manager.administration().createCache("first", slow.build()));
            SlowStore.starts.await();
            DeployedCaches deployed = DeployedCaches.of(manager).orElseThrow();
            assertTrue(deployed.isMaking("first"));
            deployed.withdraw("first", deployed.attempt("first"));
            SlowStore.end.countDown();
            making.handle((made, failure) -> null).join();
            manager.administration().removeCache("first");
            assertFalse(manager.isRunning("first"));
            assertFalse(deployed.isMaking("first"));
            assertFalse(Files.exists(SlowStore.file), "the file of its store is there");
            assertEquals(List.of(), saved());
            manager.administration().createCache("first", configuration());
            assertEquals(List.of("first"), saved());
        }
    }

    /** One that a request by REST or the console made stayed deployed, and its name was taken. */
    @Test
    void aCacheThatCannotBeMadeIsTakenBackWithoutBeingAsked() throws Exception {
        ConfigurationBuilder lacking = new ConfigurationBuilder();
        lacking.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .devices(folder.resolve("missing/device").toString());
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertThrows(RuntimeException.class, () ->
                    manager.administration().createCache("first", lacking.build()));
            TestGrid.await(() -> manager.getCacheConfiguration("first") == null
                    && state(manager).isEmpty(), "the cache was not taken back");
            assertTrue(DeployedCaches.of(manager).orElseThrow().failed("first"));
            assertEquals(List.of(), saved());
            manager.administration().createCache("first", configuration()).put("key", "value");
            assertFalse(DeployedCaches.of(manager).orElseThrow().failed("first"));
            assertEquals(List.of("first"), saved());
        }
    }

    /** A slow node that came to its undo of the former one took the new one back. */
    @Test
    void aNameThatIsDeployedAgainIsLeftAloneByTheUndoOfItsFormerDeployment() throws Exception {
        try (DefaultCacheManager manager = container()) {
            manager.start();
            DeployedCaches deployed = DeployedCaches.of(manager).orElseThrow();
            manager.administration().createCache("first", configuration());
            String former = deployed.attempt("first");
            manager.administration().removeCache("first");
            assertTrue(state(manager).isEmpty(), "what was deployed is still known");
            manager.administration().createCache("first", configuration()).put("key", "value");
            deployed.withdraw("first", former);
            assertTrue(manager.isRunning("first"), "the new one was taken back");
            deployed.forget("first", former);
            assertEquals("value", manager.getCache("first", false).get("key"));
            assertEquals(List.of("first"), saved());
            deployed.withdraw("first", deployed.attempt("first"));
            deployed.forget("first", deployed.attempt("first"));
            assertFalse(manager.cacheExists("first"));
            assertTrue(state(manager).isEmpty(), "what was deployed is still known");
        }
    }

    /**
     * All nodes take a cache back, and whoever deployed it: those behind the first gave up waiting
     * for the lock, and the deployment said that the cache could not be taken back.
     */
    @Test
    void aCacheIsForgottenOnceNobodyElseMakesOrRemovesIt() throws Exception {
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", configuration());
            CountDownLatch taken = new CountDownLatch(1);
            CountDownLatch end = new CountDownLatch(1);
            CompletableFuture<Void> other = CompletableFuture.runAsync(() ->
                    state(manager).computeIfPresent(cache("first"), (key, state) -> {
                        taken.countDown();
                        join(end);
                        return state;
                    }));
            taken.await();
            AtomicReference<Boolean> asked = new AtomicReference<>();
            Thread forgetting = new Thread(() -> Undo.forget(manager, "first", () -> {
                asked.set(end.getCount() == 0);
                return true;
            }));
            forgetting.start();
            TestGrid.await(() -> asked.get() != null
                    || forgetting.getState() == Thread.State.TIMED_WAITING
                    || forgetting.getState() == Thread.State.WAITING, "nobody forgets it");
            end.countDown();
            other.join();
            forgetting.join();
            assertEquals(true, asked.get(), "it was to be forgotten while it was being changed");
            assertTrue(state(manager).isEmpty(), "what was deployed is still known");
        }
    }

    private static void join(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
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

    /**
     * A node that withdrew had stopped the cache: nobody emptied its device, and the next cache on
     * it answered with entries of the former.
     */
    @Test
    void entriesOfACacheThatIsUndeployedWhereItIsStoppedAreNotInTheNextOne() throws Exception {
        Configuration onDevice = onDevice(folder.resolve("device"));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", onDevice).put("key", "value");
            manager.getCache("first").stop();
            manager.getCache("first").start();
            assertEquals("value", manager.getCache("first").get("key"));
            manager.getCache("first").stop();
            manager.administration().removeCache("first");
            Cache<String, String> next = manager.administration().createCache("second", onDevice);
            assertFalse(next.containsKey("key"), "an entry of the former cache is there");
            next.put("key", "newer");
        }
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertEquals("newer", manager.getCache("second").get("key"));
        }
        // One that could not start, as the device is the second's, has nothing on it.
        Files.writeString(folder.resolve("caches.xml"),
                Endpoints.xml(Map.of("second", onDevice, "third", onDevice)));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertFalse(manager.isRunning("third"));
            manager.administration().removeCache("third");
        }
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertEquals("newer", manager.getCache("second").get("key"));
        }
    }

    /** A request by REST or the console removes no file, and the next of the name had them. */
    @Test
    void entriesOfACacheThatIsRemovedWhereItIsStoppedAreNotInTheNextOfItsName() throws Exception {
        Path noted = folder.resolve("entresol.undeployed.devices");
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", stored()).put("key", "value");
            manager.getCache("first").stop();
            manager.administration().removeCache("first");
            Cache<String, String> next = manager.administration().createCache("first", stored());
            assertFalse(next.containsKey("key"), "an entry of the former cache is there");
            assertEquals("", Files.readString(noted).strip());
            next.stop();
            manager.administration().removeCache("first");
            assertTrue(Files.readString(noted).contains("first"));
            DeployedCaches.of(manager).orElseThrow().sweep("first");
            assertEquals("", Files.readString(noted).strip(), "of a file that is not there");
        }
    }

    /**
     * Infinispan empties a store and then closes it: one that could not be emptied stayed open, its
     * device in use and its entries on it.
     */
    @Test
    void aDeviceThatTakesNoWritesIsFreeOnceItsCacheIsUndeployedAndLaterEmptied()
            throws Exception {
        Configuration onDevice = onDevice(folder.resolve("device"));
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", onDevice).put("key", "value");
            // Less than the store's first write; what a node notes is smaller.
            limitFiles("16384");
            try {
                manager.administration().removeCache("first");
            } finally {
                limitFiles("unlimited");
            }
            Cache<String, String> next = manager.administration().createCache("second", onDevice);
            assertFalse(next.containsKey("key"), "an entry of the former cache is there");
            next.put("key", "newer");
        }
        try (DefaultCacheManager manager = container()) {
            manager.start();
            assertEquals("newer", manager.getCache("second").get("key"));
        }
    }

    /** Of a list of devices the next one is there; a cache that is opened on it has its entries. */
    @Test
    void whatIsNotedOfADeviceThatTakesNoWritesIsTheOneThatWasOpened() throws Exception {
        Path device = folder.resolve("device");
        Path spare = folder.resolve("spare");
        try (DefaultCacheManager manager = container()) {
            manager.start();
            manager.administration().createCache("first", onDevice(device));
            manager.administration().removeCache("first");
            Cache<String, String> second =
                    manager.administration().createCache("second", onDevice(spare));
            second.put("key", "value");
            second.stop();
            manager.administration().createCache("third", onDevices(device + "," + spare));
            Files.delete(device);
            limitFiles("16384");
            try {
                manager.administration().removeCache("third");
            } finally {
                limitFiles("unlimited");
            }
            second.start();
            assertEquals("value", second.get("key"));
        }
    }

    /** As a file system that has no room for a file's next bytes. */
    private static void limitFiles(String bytes) throws Exception {
        Process limit = new ProcessBuilder("prlimit", "--pid",
                "" + ProcessHandle.current().pid(), "--fsize=" + bytes + ":unlimited")
                .inheritIO().start();
        assertEquals(0, limit.waitFor(), "prlimit");
    }

    private static Configuration onDevice(Path device) {
        return onDevices(device.toString());
    }

    private static Configuration onDevices(String devices) {
        ConfigurationBuilder stored = new ConfigurationBuilder();
        stored.persistence().passivation(false)
                .addStore(EntresolStoreConfigurationBuilder.class)
                .devices(devices).capacity("64MiB").memory("32MiB");
        return stored.build();
    }

    private static Cache<ScopedState, Object> state(DefaultCacheManager manager) {
        return GlobalComponentRegistry.componentOf(manager, GlobalConfigurationManager.class)
                .getStateCache();
    }

    private static ScopedState cache(String name) {
        return new ScopedState(GlobalConfigurationManagerImpl.CACHE_SCOPE, name);
    }

    private static void takeBack(DefaultCacheManager manager, String name,
            Configuration configuration) {
        manager.administration().createCache(name, configuration);
        DeployedCaches deployed = DeployedCaches.of(manager).orElseThrow();
        deployed.withdraw(name, deployed.attempt(name));
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

    private static Configuration stored() {
        ConfigurationBuilder stored = new ConfigurationBuilder();
        stored.persistence().passivation(false)
                .addStore(EntresolStoreConfigurationBuilder.class)
                .capacity("64MiB").memory("32MiB");
        return stored.build();
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
