package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Function;
import org.infinispan.AdvancedCache;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.context.Flag;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.test.TestingUtil;
import org.testng.annotations.AfterClass;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.DataProvider;
import org.testng.annotations.Test;

/** Whoever loaded a key before it was changed is told before the change is over. */
@Test(groups = "unit", testName = "infinispan.LoadsTest")
public class LoadsTest {
    private static final byte[] KEY = bytes("key");
    private static final byte[] OTHER = bytes("other");

    /** More than the write buffers of a store with 32 MiB hold, of values too long for its cache. */
    private static final int FILLS = 40;
    private static final int VALUE_BYTES = 1 << 20;

    private final Loads loads = new Loads();
    private String folder;

    @BeforeClass(alwaysRun = true)
    protected void makeFolder() {
        folder = CommonsTestingUtil.tmpDirectory(getClass());
    }

    @AfterClass(alwaysRun = true)
    protected void removeFolder() {
        Util.recursiveFileRemove(folder);
    }

    public void aChangeWaitsForTheLoadsBeforeItAndForNoneThatFollows() {
        Loads.Load first = loads.begin(KEY);
        Loads.Load second = loads.begin(KEY);
        CompletableFuture<String> change = changed(KEY, "changed");
        Loads.Load later = loads.begin(KEY);
        CompletableFuture<String> next = changed(KEY, "changed again");
        assertEquals(changed(OTHER, "other").join(), "other");
        loads.end(second);
        assertFalse(change.isDone());
        loads.end(first);
        assertEquals(change.join(), "changed");
        assertFalse(next.isDone());
        loads.end(later);
        assertEquals(next.join(), "changed again");
        assertEquals(changed(KEY, "at once").join(), "at once");
    }

    public void aSecondChangeWaitsForTheLoadsOfTheFirstToo() {
        Loads.Load load = loads.begin(KEY);
        CompletableFuture<String> change = changed(KEY, "changed");
        CompletableFuture<String> next = changed(KEY, "changed again");
        CompletableFuture<String> all = allChanged();
        assertFalse(change.isDone() || next.isDone() || all.isDone());
        loads.end(load);
        assertTrue(change.isDone() && next.isDone() && all.isDone());
    }

    /** Else who changes what it is being told, and waits for that, would wait for itself. */
    public void whoIsToldOfAnEntryMayChangeItAtOnce() {
        Loads.Load load = loads.begin(KEY);
        loads.tell(load, () -> assertEquals(changed(KEY, "changed").join(), "changed"));
        assertEquals(changed(KEY, "and after").join(), "and after");
        Loads.Load next = loads.begin(KEY);
        loads.tell(next, () -> assertEquals(allChanged().join(), "all"));
    }

    public void aChangeThatFailsIsToldAtOnce() {
        Loads.Load load = loads.begin(KEY);
        CompletionStage<String> failed = loads.changed(KEY,
                CompletableFuture.failedFuture(new IllegalStateException("full")));
        assertTrue(failed.toCompletableFuture().isCompletedExceptionally());
        loads.end(load);
    }

    @DataProvider
    public Object[][] changes() {
        Function<AdvancedCache<String, String>, CompletableFuture<?>> remove =
                cache -> cache.removeAsync("key");
        Function<AdvancedCache<String, String>, CompletableFuture<?>> clear =
                AdvancedCache::clearAsync;
        return new Object[][] {{"removes", remove}, {"clears", clear}};
    }

    /**
     * A get found the entry, and is told of it only after the entry was removed: what Infinispan's
     * second owner of a key does while the first one answers.
     */
    @Test(dataProvider = "changes")
    public void aSlowGetBringsNoRemovedEntryBack(String name,
            Function<AdvancedCache<String, String>, CompletableFuture<?>> change)
            throws IOException, InterruptedException {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration(name, new ConfigurationBuilder().persistence()
                    .addStore(EntresolStoreConfigurationBuilder.class)
                    .path(folder).capacity("256MiB").memory("32MiB").build());
            AdvancedCache<String, String> cache = container.<String, String>getCache(name)
                    .getAdvancedCache();
            EntresolStore<String, String> store = TestingUtil.getFirstStore(cache);
            String old = "x".repeat(VALUE_BYTES);
            cache.put("key", old);
            cache.evict("key");
            fill(cache, old);
            BlockingQueue<Runnable> held = new LinkedBlockingQueue<>();
            TestingUtil.replaceField((java.util.concurrent.Executor) held::add, "executor", store,
                    EntresolStore.class);
            // In a thread that is not known to wait for what it loads.
            CompletableFuture<String> got =
                    CompletableFuture.supplyAsync(() -> cache.getAsync("key")).join();
            assertFalse(got.isDone(), "it was not on flash");
            Runnable telling = held.take();
            CompletableFuture<?> changed = change.apply(
                    cache.withFlags(Flag.IGNORE_RETURN_VALUES, Flag.SKIP_CACHE_LOAD));
            // What comes after it is over.
            cache.withFlags(Flag.SKIP_CACHE_LOAD).put("other", "value");
            telling.run();
            changed.join();
            got.join();
            assertFalse(cache.withFlags(Flag.SKIP_CACHE_LOAD).containsKey("key"),
                    "it is in memory");
        }
    }

    /** So much that what was there before is in no memory any more. */
    private static void fill(AdvancedCache<String, String> cache, String value) {
        for (int key = 0; key < FILLS; key++) {
            cache.put("fill-" + key, value);
            cache.evict("fill-" + key);
        }
    }

    private CompletableFuture<String> changed(byte[] key, String result) {
        return loads.changed(key, CompletableFuture.completedFuture(result))
                .toCompletableFuture();
    }

    private CompletableFuture<String> allChanged() {
        return loads.allChanged(CompletableFuture.completedFuture("all")).toCompletableFuture();
    }

    private static byte[] bytes(String key) {
        return key.getBytes(StandardCharsets.US_ASCII);
    }
}
