package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertNull;

import io.reactivex.rxjava3.core.Flowable;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.infinispan.Cache;
import org.infinispan.commons.time.ControlledTimeService;
import org.infinispan.commons.time.TimeService;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.test.TestingUtil;
import org.testng.annotations.Test;

/** A store from which a cache only reads: {@code read-only="true"}. */
@Test(groups = "unit", testName = "infinispan.ReadOnlyStoreTest")
public class ReadOnlyStoreTest extends FolderTest {
    private final ControlledTimeService time = new ControlledTimeService();
    /** A purge took ended entries out of it, and a rebalance those of segments given up. */
    public void whateverACacheDoesAStoreThatItOnlyReadsKeepsItsEntries() throws IOException {
        with(false, cache -> {
            cache.put("stays", "one");
            cache.put("ends", "two", 5, TimeUnit.MILLISECONDS);
        });
        time.advance(10);
        with(true, cache -> {
            EntresolStore<String, String> store = TestingUtil.getFirstStore(cache);
            long before = store.statistics().orElseThrow().entries();
            cache.put("stays", "three");
            cache.put("new", "four");
            cache.clear();
            IntSet all = IntSets.immutableRangeSet(
                    cache.getCacheConfiguration().clustering().hash().numSegments());
            assertEquals((long) Flowable.fromPublisher(store.purgeExpired()).count()
                    .blockingGet(), 0);
            store.removeSegments(all).toCompletableFuture().join();
            store.addSegments(all).toCompletableFuture().join();
            assertEquals(store.statistics().orElseThrow().entries(), before);
            assertEquals(cache.get("stays"), "one");
            assertNull(cache.get("ends"));
            assertNull(cache.get("new"));
        });
    }

    private void with(boolean readOnly, Consumer<Cache<String, String>> use) throws IOException {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration("read", flash().ignoreModifications(readOnly).build());
            TestingUtil.replaceComponent(container, TimeService.class, time, true);
            use.accept(container.getCache("read"));
        }
    }
}
