package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertTrue;
import static org.testng.Assert.expectThrows;

import io.entresol.KilledStores;
import java.io.IOException;
import java.nio.file.Path;
import org.infinispan.Cache;
import org.infinispan.commons.CacheException;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.manager.PersistenceManager;
import org.infinispan.persistence.manager.PersistenceManagerImpl;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.infinispan.test.TestingUtil;
import org.testng.annotations.AfterClass;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.Test;

/** A local cache whose device takes no writes. */
@Test(groups = "unit", testName = "infinispan.RefusedWritesTest")
public class RefusedWritesTest {
    private String folder;

    @BeforeClass(alwaysRun = true)
    protected void makeFolder() {
        folder = CommonsTestingUtil.tmpDirectory(getClass());
    }

    @AfterClass(alwaysRun = true)
    protected void removeFolder() throws IOException {
        // What a store that takes no writes has yet to write stays there for its next opening.
        KilledStores.removeBuffers(Path.of(folder));
        Util.recursiveFileRemove(folder);
    }

    /**
     * A failed clear was taken for a failed read: the store was said to be damaged, and to be
     * available, although it refuses all writes from then on.
     */
    public void aStoreWhoseFirstFailureIsThatOfAClearRefusesWrites() throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration("flash", new ConfigurationBuilder().persistence()
                    .addStore(EntresolStoreConfigurationBuilder.class)
                    .path(folder).capacity("64MiB").memory("64MiB").build());
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
                cache.stop();
            } finally {
                limitFiles("unlimited");
            }
            cache.start();
            assertEquals(cache.get("key"), "value");
        }
    }

    public void aFullStoreIsFreeOnceItsCacheHasStoppedThoughMoreWasWrittenBehind() throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            Cache<String, Object> cache = writtenBehind(container, "full", "process");
            for (int key = 0; key < 100; key++) {
                cache.put("key " + key, new byte[1 << 20]);
            }
            cache.stop();
            cache.start();
            assertTrue(cache.size() > 0);
        }
    }

    private Cache<String, Object> writtenBehind(DefaultCacheManager container, String name,
            String durability) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.persistence().availabilityInterval(20).connectionAttempts(50)
                .addStore(EntresolStoreConfigurationBuilder.class).path(folder)
                .capacity("64MiB").memory("64MiB").durability(durability).async().enable();
        container.defineConfiguration(name, builder.build());
        return container.getCache(name);
    }

    private static String sentences(Throwable failure) {
        StringBuilder said = new StringBuilder();
        for (Throwable each = failure; each != null; each = each.getCause()) {
            said.append(each.getMessage()).append('\n');
        }
        return said.toString();
    }

    /** As a file system that has no room for a file's next bytes: less than a store writes. */
    private static void limitFiles(String bytes) throws Exception {
        Process limit = new ProcessBuilder("prlimit", "--pid",
                "" + ProcessHandle.current().pid(), "--fsize=" + bytes + ":unlimited")
                .inheritIO().start();
        assertEquals(limit.waitFor(), 0, "prlimit");
    }
}
