package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertNotNull;
import static org.testng.Assert.assertTrue;
import static org.testng.Assert.expectThrows;

import io.entresol.KilledStores;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import javax.management.MBeanServer;
import javax.management.MBeanServerFactory;
import org.infinispan.Cache;
import org.infinispan.commons.CacheException;
import org.infinispan.commons.api.CacheContainerAdmin;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.context.Flag;
import org.infinispan.lifecycle.ComponentStatus;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.manager.PersistenceManager;
import org.infinispan.persistence.manager.PersistenceManagerImpl;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.infinispan.test.TestingUtil;
import org.testng.annotations.AfterClass;
import org.testng.annotations.Test;

/** A local cache whose device takes no writes. */
@Test(groups = "unit", testName = "infinispan.RefusedWritesTest")
public class RefusedWritesTest extends FolderTest {
    @AfterClass(alwaysRun = true)
    @Override
    protected void removeFolder() throws IOException {
        // What a store that takes no writes has yet to write stays there for its next opening.
        KilledStores.removeBuffers(Path.of(folder));
        super.removeFolder();
    }

    /**
     * A failed clear was taken for a failed read: the store was said to be damaged, and to be
     * available, although it refuses all writes from then on.
     */
    public void aStoreWhoseFirstFailureIsThatOfAClearRefusesWrites() throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration("flash", flash().build());
            Cache<String, String> cache = container.getCache("flash");
            cache.put("key", "value");
            EntresolStore<String, String> store = TestingUtil.getFirstStore(cache);
            assertTrue(store.isAvailable().toCompletableFuture().join());
            limitFiles("16384");
            try {
                String said = sentences(expectThrows(CacheException.class, cache::clear));
                assertTrue(said.contains("refuses writes: ") && said.contains("File too large"),
                        said);
                assertFalse(store.isAvailable().toCompletableFuture().join());
            } finally {
                limitFiles("unlimited");
            }
        }
    }

    /**
     * Infinispan waited for the store to be available before it stopped it, for ever, or left it
     * open: its device was in use until the process ended.
     */
    public void aStoreThatRefusesWhatWasWrittenBehindIsFreeOnceItsCacheHasStopped()
            throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            Cache<String, Object> cache = writtenBehind(container, "failing", "synced");
            cache.put("key", "value");
            PersistenceManagerImpl stores = (PersistenceManagerImpl)
                    TestingUtil.extractComponent(cache, PersistenceManager.class);
            NonBlockingStore<String, Object> queue =
                    stores.<String, Object>getAllStores(any -> true).get(0);
            EntresolStore<String, Object> store = TestingUtil.getFirstStore(cache);
            int segment = TestingUtil.getSegmentForKey("key", cache);
            while (store.load(segment, "key").toCompletableFuture().join() == null) {
                Thread.onSpinWait();
            }
            limitFiles("16384");
            try {
                cache.put("other", "value");
                while (store.isAvailable().toCompletableFuture().join()) {
                    Thread.onSpinWait();
                }
                // From now on what is queued waits.
                queue.isAvailable().toCompletableFuture().join();
                String said = sentences(expectThrows(CacheException.class,
                        () -> cache.put("third", "value")));
                assertTrue(said.contains("refuses writes: "), said);
                assertEquals(cache.get("third"), null);
                cache.evict("other");
                assertEquals(cache.get("other"), "value");
                StoreHealth health = store.opened().health();
                cache.stop();
                assertEquals(health.unwritten().lost(), 1);
            } finally {
                limitFiles("unlimited");
            }
            cache.start();
            assertEquals(cache.get("key"), "value");
        }
    }

    /**
     * Writes were told as done for as long as the store was full, and dropped after some attempts:
     * readers found what was there before.
     */
    public void whatWasWrittenBehindIsThereThoughTheStoreWasFullMeanwhile() throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            Cache<String, Object> cache = writtenBehind(container, "full", "process");
            int told = fill(cache);
            for (int key = 0; key < told; key++) {
                assertNotNull(cache.get("key " + key), "key " + key + " of " + told);
                cache.evict("key " + key);
            }
            int removed = told - 5;
            for (int key = 0; key < removed; key++) {
                cache.remove("key " + key);
            }
            cache.put("key 0", "again");
            cache.put("more", "value");
            cache.stop();
            cache.start();
            assertEquals(cache.get("more"), "value");
            assertEquals(cache.get("key 0"), "again");
            for (int key = 1; key < told; key++) {
                assertEquals(cache.containsKey("key " + key), key >= removed, "key " + key);
            }
        }
    }

    public void aFullStoreIsFreeOnceItsCacheHasStoppedThoughMoreWasWrittenBehind() throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            Cache<String, Object> cache = writtenBehind(container, "left full", "process");
            fill(cache);
            cache.stop();
            cache.start();
            assertTrue(cache.size() > 0);
            cache.clear();
            cache.put("key", "value");
        }
    }

    public void aClearMakesRoomForWhatIsWrittenBehind() throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            Cache<String, Object> cache = writtenBehind(container, "cleared", "process");
            fill(cache);
            cache.clear();
            assertEquals(cache.size(), 0);
            cache.put("key", "value");
            cache.stop();
            cache.start();
            assertEquals(cache.size(), 1);
        }
    }

    /**
     * A clear takes what waits in a full store's queue for removed, until it has its turn there. Where
     * that came as the cache stopped, what had been put after it counted as removed, too.
     */
    public void whatIsPutAfterAClearThatHasItsTurnAsTheCacheStopsIsWritten() throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration("late", flash().build());
            Cache<String, String> cache = container.getCache("late");
            cache.put("key", "value");
            EntresolStore<String, String> store = TestingUtil.getFirstStore(cache);
            int segment = TestingUtil.getSegmentForKey("key", cache);
            MarshallableEntry<String, String> later =
                    store.load(segment, "key").toCompletableFuture().join();
            OpenStore<String, String> open = store.opened();
            Unwritten waits = TestingUtil.extractField(OpenStore.class, open, "unwritten");
            waits.clear();
            InitializationContext context =
                    TestingUtil.extractField(OpenStore.class, open, "context");
            TestingUtil.replaceField(stopping(context), "context", open, OpenStore.class);
            store.clear().toCompletableFuture().join();
            TestingUtil.replaceField(context, "context", open, OpenStore.class);
            store.write(segment, later).toCompletableFuture().join();
            assertNotNull(store.load(segment, "key").toCompletableFuture().join());
        }
    }

    /** The same context, of a cache that is about to stop. */
    private static InitializationContext stopping(InitializationContext context) {
        Cache<?, ?> cache = with(Cache.class, context.getCache(), "getStatus",
                ComponentStatus.STOPPING);
        return with(InitializationContext.class, context, "getCache", cache);
    }

    private static <T> T with(Class<T> type, Object there, String method, Object answer) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
                (proxy, called, arguments) -> called.getName().equals(method) ? answer
                        : called.invoke(there, arguments)));
    }

    /** It failed at each attempt, and what came after it in the queue was never written. */
    public void whatCannotBeWrittenBehindTakesNothingElseWithIt() throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            ConfigurationBuilder builder = behind("process");
            builder.persistence().stores().get(0).segmented(false);
            container.defineConfiguration("wrong", builder.build());
            Cache<String, Object> cache = container.getCache("wrong");
            Cache<String, Object> blind =
                    cache.getAdvancedCache().withFlags(Flag.IGNORE_RETURN_VALUES);
            for (int key = 0; key < 400; key++) {
                blind.put(key + "x".repeat(key == 100 ? 70_000 : 0), "value");
            }
            cache.stop();
            cache.start();
            for (int key = 0; key < 400; key++) {
                assertEquals(cache.containsKey("" + key), key != 100, "key " + key);
            }
        }
    }

    /** 16 MiB of memory stayed until the machine was restarted. */
    public void theBuffersOfADeviceThatIsGoneAndWasOfARemovedCacheGoWithTheNextStart()
            throws Exception {
        Path device = Path.of(folder, "device");
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder();
        global.globalState().enable().persistentLocation(folder + "/state");
        try (DefaultCacheManager container = new DefaultCacheManager(global.build())) {
            var caches = container.administration()
                    .withFlags(CacheContainerAdmin.AdminFlag.VOLATILE);
            caches.createCache("removed",
                    flash().path(null).devices(device.toString()).build()).put("key", "value");
            limitFiles("16384");
            try {
                caches.removeCache("removed");
            } finally {
                limitFiles("unlimited");
            }
            Path buffers = KilledStores.buffers(device);
            assertTrue(Files.exists(buffers), "nothing is left of the store");
            caches.createCache("next", flash().path(null).build());
            assertTrue(Files.exists(buffers), "the device is there, and has yet to be emptied");
            Files.delete(device);
            caches.createCache("last", flash().path(null).build());
            assertFalse(Files.exists(buffers), "the buffers are there");
        }
    }

    /** A device that hangs may never answer the close of its store. */
    public void aCacheStopsThoughItsFailedStoreDoesNotClose() throws Exception {
        CountDownLatch answers = new CountDownLatch(1);
        MBeanServer beans = MBeanServerFactory.newMBeanServer();
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder();
        global.jmx().enabled(true).mBeanServerLookup(properties -> slow(beans, answers));
        try (DefaultCacheManager container = new DefaultCacheManager(global.build())) {
            ConfigurationBuilder builder = new ConfigurationBuilder();
            builder.statistics().enable();
            container.defineConfiguration("hangs", flash(builder).build());
            Cache<String, String> cache = container.getCache("hangs");
            cache.put("key", "value");
            limitFiles("16384");
            try {
                expectThrows(CacheException.class, cache::clear);
            } finally {
                limitFiles("unlimited");
            }
            cache.stop();
            Thread closing = Thread.getAllStackTraces().keySet().stream()
                    .filter(thread -> thread.getName().equals("entresol closes hangs"))
                    .findFirst().orElseThrow();
            answers.countDown();
            closing.join();
            cache.start();
            assertEquals(cache.size(), 1);
        }
    }

    /** As what is asked of a store before it closes, by a thread of its own, and takes long. */
    private static MBeanServer slow(MBeanServer beans, CountDownLatch answers) {
        return (MBeanServer) Proxy.newProxyInstance(RefusedWritesTest.class.getClassLoader(),
                new Class<?>[] {MBeanServer.class}, (proxy, method, arguments) -> {
                    if (Thread.currentThread().getName().startsWith("entresol closes ")) {
                        answers.await();
                    }
                    return method.invoke(beans, arguments);
                });
    }

    /** Infinispan may look no more: its thread for that waits for something else, say. */
    public void whoStopsACacheWaitsForALookForAWhileOnly() throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration("unseen", flash().build());
            Cache<String, String> cache = container.getCache("unseen");
            EntresolStore<String, String> store = TestingUtil.getFirstStore(cache);
            StoreHealth health = store.opened().health();
            health.stopsWaiting(Long.MAX_VALUE);
            limitFiles("16384");
            try {
                expectThrows(CacheException.class, cache::clear);
                health.stopsWaiting(1);
                CompletableFuture<Void> stops =
                        CompletableFuture.runAsync(() -> health.stopsWaiting(Long.MAX_VALUE));
                while (!stops.isDone()) {
                    assertTrue(health.look(), "who waits is told that it waits for nothing");
                }
            } finally {
                limitFiles("unlimited");
            }
        }
    }

    /** Whoever looks at the store is told what writers were told. */
    public void aStoreThatRefusedAWriteForWantOfRoomIsInTroubleUntilThereIsSome()
            throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration("in trouble", flash().build());
            Cache<String, Object> cache = container.getCache("in trouble");
            EntresolStore<String, Object> store = TestingUtil.getFirstStore(cache);
            assertTrue(store.trouble().isEmpty());
            int kept = fill(cache);
            StoreTrouble trouble = store.trouble().orElseThrow();
            assertTrue(trouble.what().contains("is full on this node"), trouble.what());
            assertTrue(trouble.next().contains("Remove entries"), trouble.next());
            for (int key = 0; key < kept; key++) {
                cache.remove("key " + key);
            }
            assertTrue(store.trouble().isEmpty(), "" + store.trouble());
            assertFalse(store.devices().isEmpty());
            cache.stop();
            assertTrue(store.trouble().isEmpty() && store.segments(1).isEmpty());
        }
    }

    /** Puts values until the store has no more room; how many were told as done. */
    private static int fill(Cache<String, Object> cache) {
        for (int key = 0; key < 500; key++) {
            try {
                cache.put("key " + key, new byte[1 << 20]);
            } catch (CacheException refused) {
                String said = sentences(refused);
                assertTrue(said.contains("is full on this node") && said.contains("Remove entries"),
                        said);
                assertFalse(cache.containsKey("key " + key));
                return key;
            }
        }
        throw new AssertionError("the store is not full");
    }

    private Cache<String, Object> writtenBehind(DefaultCacheManager container, String name,
            String durability) {
        container.defineConfiguration(name, behind(durability).build());
        return container.getCache(name);
    }

    private ConfigurationBuilder behind(String durability) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.persistence().availabilityInterval(20).connectionAttempts(50);
        flash(builder).durability(durability).async().enable();
        return builder;
    }

    /** As a file system that has no room for a file's next bytes: less than a store writes. */
    private static void limitFiles(String bytes) throws Exception {
        Process limit = new ProcessBuilder("prlimit", "--pid",
                "" + ProcessHandle.current().pid(), "--fsize=" + bytes + ":unlimited")
                .inheritIO().start();
        assertEquals(limit.waitFor(), 0, "prlimit");
    }
}
