package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertTrue;
import static org.testng.Assert.expectThrows;

import org.infinispan.Cache;
import org.infinispan.commons.CacheException;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;
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
    protected void removeFolder() {
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
