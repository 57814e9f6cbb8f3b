package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertNull;
import static org.testng.Assert.assertTrue;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.stream.Stream;
import org.infinispan.AdvancedCache;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.container.impl.InternalDataContainer;
import org.infinispan.context.Flag;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.MarshallableEntryFactory;
import org.infinispan.test.TestingUtil;
import org.infinispan.transaction.LockingMode;
import org.infinispan.transaction.TransactionMode;
import org.infinispan.transaction.lookup.EmbeddedTransactionManagerLookup;
import org.testng.annotations.DataProvider;
import org.testng.annotations.Test;

/** Loads of a key that began before a change are answered before the change completes. */
@Test(groups = "unit", testName = "infinispan.LoadsTest")
public class LoadsTest extends FolderTest {
    private static final byte[] KEY = bytes("key");
    private static final byte[] OTHER = bytes("other");

    /** More than the write buffers of a store with 32 MiB hold, of values too long for its cache. */
    private static final int FILLS = 40;
    private static final int VALUE_BYTES = 1 << 20;

    private final Loads loads = new Loads();
    public void aChangeWaitsForTheLoadsBeforeItAndForNoneThatFollows() {
        Loads.Load first = loads.begin(KEY);
        Loads.Load second = loads.begin(KEY);
        CompletableFuture<String> change = changed(KEY, "changed");
        Loads.Load later = loads.begin(KEY);
        CompletableFuture<String> next = changed(KEY, "changed again");
        assertEquals(changed(OTHER, "other").join(), "other");
        second.end();
        assertFalse(change.isDone());
        first.end();
        assertEquals(change.join(), "changed");
        assertFalse(next.isDone());
        later.end();
        assertEquals(next.join(), "changed again");
        assertEquals(changed(KEY, "at once").join(), "at once");
    }

    public void aSecondChangeWaitsForTheLoadsOfTheFirstToo() {
        Loads.Load load = loads.begin(KEY);
        CompletableFuture<String> change = changed(KEY, "changed");
        CompletableFuture<String> next = changed(KEY, "changed again");
        CompletableFuture<String> all = allChanged();
        assertFalse(change.isDone() || next.isDone() || all.isDone());
        load.end();
        assertTrue(change.isDone() && next.isDone() && all.isDone());
    }

    /** Else who changes what it is being told, and waits for that, would wait for itself. */
    public void whoIsToldOfAnEntryMayChangeItAtOnce() {
        Loads.Load load = loads.begin(KEY);
        tell(load, () -> assertEquals(changed(KEY, "changed").join(), "changed"));
        assertEquals(changed(KEY, "and after").join(), "and after");
        Loads.Load next = loads.begin(KEY);
        tell(next, () -> assertEquals(allChanged().join(), "all"));
    }

    /** A listener of what is loaded, say, in the thread of the read that it belongs to. */
    public void whoIsToldWithinAReadMayChangeItAtOnce() {
        Reader reader = Reader.ofThread();
        Reader.Read outer = reader.enter(true);
        assertNull(loads.begin(KEY));
        Reader.Read suspended = reader.enter(false);
        assertEquals(changed(KEY, "changed").join(), "changed");
        assertEquals(allChanged().join(), "all");
        assertNull(reader.leave(suspended));
        Reader.Read read = reader.leave(outer);
        CompletableFuture<String> change = changed(KEY, "changed again");
        assertFalse(change.isDone());
        read.end();
        assertTrue(change.isDone());
    }

    /** It would wait for itself. */
    public void whatAWriteLoadsIsOverBeforeItChangesTheStore() {
        Reader reader = Reader.ofThread();
        Reader.Read outer = reader.enter(true);
        Reader.Read read = reader.enter(false);
        Loads.Load ofWrite = loads.begin(OTHER);
        assertNull(reader.leave(read));
        assertNull(loads.begin(KEY));
        reader.leave(outer).end();
        ofWrite.end();
        assertTrue(changed(KEY, "changed").isDone() && changed(OTHER, "changed").isDone());
        loads.begin(KEY).end();
    }

    public void aChangeThatFailsIsToldAtOnce() {
        Loads.Load load = loads.begin(KEY);
        CompletionStage<String> failed = loads.changed(KEY,
                CompletableFuture.failedFuture(new IllegalStateException("full")));
        assertTrue(failed.toCompletableFuture().isCompletedExceptionally());
        load.end();
    }

    @DataProvider
    public Object[][] changes() {
        Function<AdvancedCache<String, String>, CompletableFuture<?>> remove =
                cache -> cache.removeAsync("key");
        Function<AdvancedCache<String, String>, CompletableFuture<?>> clear =
                AdvancedCache::clearAsync;
        Function<AdvancedCache<String, String>, CompletableFuture<?>> lose = cache -> {
            IntSet all = IntSets.immutableRangeSet(
                    cache.getCacheConfiguration().clustering().hash().numSegments());
            // As Infinispan does where others own them from now on.
            TestingUtil.extractComponent(cache, InternalDataContainer.class).clear(all);
            return TestingUtil.getFirstStore(cache).removeSegments(all).toCompletableFuture();
        };
        return new Object[][] {{"removes", remove}, {"clears", clear}, {"loses", lose}};
    }

    /** With write-through and with write-behind, and that in transactions. */
    @DataProvider
    public Object[][] changesOfEachCache() {
        return Stream.of(changes()).flatMap(change -> Stream.of("through", "behind", "committed")
                        .map(how -> new Object[] {change[0], change[1], how}))
                .toArray(Object[][]::new);
    }

    /**
     * A get found the entry, and is told of it only after the entry was removed: what Infinispan's
     * second owner of a key does while the first one answers.
     */
    @Test(dataProvider = "changesOfEachCache")
    public void aSlowGetBringsNoRemovedEntryBack(String name,
            Function<AdvancedCache<String, String>, CompletableFuture<?>> change, String how)
            throws IOException, InterruptedException {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            boolean behind = !how.equals("through");
            ConfigurationBuilder configuration =
                    how.equals("committed") ? transactional() : configuration();
            configuration.persistence().stores().get(0).async().enabled(behind);
            container.defineConfiguration(name + how, configuration.build());
            AdvancedCache<String, String> cache =
                    container.<String, String>getCache(name + how).getAdvancedCache();
            EntresolStore<String, String> store = TestingUtil.getFirstStore(cache);
            String old = "x".repeat(VALUE_BYTES);
            cache.put("key", old);
            cache.evict("key");
            fill(cache, old);
            BlockingQueue<Runnable> held = new LinkedBlockingQueue<>();
            TestingUtil.replaceField((java.util.concurrent.Executor) held::add, "executor",
                    store.opened(), OpenStore.class);
            CompletableFuture<String> got;
            do {
                cache.evict("key");
                // In a thread that is not known to wait for what it loads.
                got = CompletableFuture.supplyAsync(() -> cache.getAsync("key")).join();
                assertFalse(got.isDone() && !behind, "it was not on flash");
                // It may still be in the queue of what is written behind.
            } while (got.isDone());
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

    /**
     * A get found the entry in the store's memory, and is answered before the value is made an
     * object, which the store sees nothing of.
     */
    @Test(dataProvider = "changes")
    public void aGetWhoseValueIsSlowlyMadeAnObjectBringsNoRemovedEntryBack(String name,
            Function<AdvancedCache<String, String>, CompletableFuture<?>> change)
            throws IOException {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            AdvancedCache<String, String> cache = cache(container, name + " meanwhile");
            AtomicReference<CompletableFuture<?>> changed = changedAsItIsLoaded(cache, change);
            assertEquals(cache.get("key"), "old");
            changed.get().join();
            assertFalse(cache.withFlags(Flag.SKIP_CACHE_LOAD).containsKey("key"),
                    "it is in memory");
        }
    }

    /** A write of a transaction loads the old value before it has the key's lock. */
    @Test
    public void aTransactionThatIsRolledBackBringsNoRemovedEntryBack() throws Exception {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration("transaction", transactional().build());
            AdvancedCache<String, String> cache =
                    container.<String, String>getCache("transaction").getAdvancedCache();
            AtomicReference<CompletableFuture<?>> changed =
                    changedAsItIsLoaded(cache, flagged -> flagged.removeAsync("key"));
            cache.getTransactionManager().begin();
            assertEquals(cache.put("key", "never"), "old");
            cache.getTransactionManager().rollback();
            changed.get().join();
            assertFalse(cache.withFlags(Flag.SKIP_CACHE_LOAD).containsKey("key"),
                    "it is in memory");
        }
    }

    /** Puts an entry, and changes it once, as its value is made an object for who loads it. */
    private static AtomicReference<CompletableFuture<?>> changedAsItIsLoaded(
            AdvancedCache<String, String> cache,
            Function<AdvancedCache<String, String>, CompletableFuture<?>> change) {
        cache.put("key", "old");
        cache.evict("key");
        AtomicReference<CompletableFuture<?>> changed = new AtomicReference<>();
        MarshallableEntryFactory<String, String> factory = TestingUtil.extractComponent(
                cache, MarshallableEntryFactory.class);
        TestingUtil.replaceField(slow(factory, () -> {
            if (changed.get() == null) {
                // In a thread that is not about the load.
                changed.set(CompletableFuture.supplyAsync(() -> change.apply(
                        cache.withFlags(Flag.IGNORE_RETURN_VALUES, Flag.SKIP_CACHE_LOAD)))
                        .join());
                // What comes after it is over.
                CompletableFuture.runAsync(() -> cache.withFlags(Flag.SKIP_CACHE_LOAD)
                        .put("other", "value")).join();
            }
        }), "factory", ((EntresolStore<?, ?>) TestingUtil.getFirstStore(cache)).opened(),
                OpenStore.class);
        return changed;
    }

    /** Nothing was loaded, and so it was taken for nothing. */
    @Test
    public void aRemovalThatWantsNoOldValueRemovesWhatIsOnFlashAlone() throws IOException {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            AdvancedCache<String, String> cache = cache(container, "removal");
            cache.put("key", "there");
            cache.evict("key");
            cache.withFlags(Flag.IGNORE_RETURN_VALUES).remove("key");
            assertFalse(cache.containsKey("key"), "it is on flash");
        }
    }

    /** Makes entries whose values take a while to become objects. */
    @SuppressWarnings("unchecked")
    private static MarshallableEntryFactory<String, String> slow(
            MarshallableEntryFactory<String, String> factory, Runnable meanwhile) {
        return (MarshallableEntryFactory<String, String>) Proxy.newProxyInstance(
                LoadsTest.class.getClassLoader(), new Class<?>[] {MarshallableEntryFactory.class},
                (proxy, method, arguments) -> {
                    Object made = method.invoke(factory, arguments);
                    return Proxy.newProxyInstance(LoadsTest.class.getClassLoader(),
                            new Class<?>[] {MarshallableEntry.class}, (entry, asked, given) -> {
                                if (asked.getName().equals("getValue")) {
                                    meanwhile.run();
                                }
                                return asked.invoke(made, given);
                            });
                });
    }

    private AdvancedCache<String, String> cache(DefaultCacheManager container, String name) {
        container.defineConfiguration(name, configuration().build());
        return container.<String, String>getCache(name).getAdvancedCache();
    }

    private ConfigurationBuilder configuration() {
        ConfigurationBuilder configuration = new ConfigurationBuilder();
        flash(configuration).capacity("256MiB").memory("32MiB");
        return configuration;
    }

    private ConfigurationBuilder transactional() {
        ConfigurationBuilder configuration = configuration();
        configuration.transaction().transactionMode(TransactionMode.TRANSACTIONAL)
                .lockingMode(LockingMode.OPTIMISTIC)
                .transactionManagerLookup(new EmbeddedTransactionManagerLookup());
        return configuration;
    }

    /** So much that what was there before is in no memory any more. */
    private static void fill(AdvancedCache<String, String> cache, String value) {
        for (int key = 0; key < FILLS; key++) {
            cache.put("fill-" + key, value);
            cache.evict("fill-" + key);
        }
    }

    /** Tells of an entry to somebody who does this with it. */
    private void tell(Loads.Load load, Runnable does) {
        CompletableFuture<String> told = new CompletableFuture<>();
        CompletableFuture<Void> done = told.thenRun(does);
        loads.tell(load, told, "entry", null);
        done.join();
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
