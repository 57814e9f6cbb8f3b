package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertNotNull;
import static org.testng.Assert.assertNull;
import static org.testng.Assert.assertTrue;
import static org.testng.Assert.expectThrows;

import java.io.IOException;
import java.util.Map;
import java.util.function.Consumer;
import org.infinispan.Cache;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.distribution.ch.impl.RESPHashFunctionPartitioner;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.test.TestingUtil;
import org.testng.annotations.Test;

/** Segments that a store's node gives up and gets again. */
@Test(groups = "unit", testName = "infinispan.SegmentsTest")
public class SegmentsTest extends FolderTest {
    /**
     * With write-behind Infinispan forgets what is queued for segments that the node gives up, but
     * not what it has begun to write. That was there when the node owned the segment again, also
     * where the entry had been removed meanwhile.
     */
    public void whatCameIntoASegmentAfterItWasGivenUpIsNotThereWhenItIsOwnedAgain()
            throws IOException {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration("segments", flash().build());
            Cache<String, String> cache = container.getCache("segments");
            cache.put("key", "value");
            cache.put("other", "value");
            int segment = TestingUtil.getSegmentForKey("key", cache);
            int kept = TestingUtil.getSegmentForKey("other", cache);
            EntresolStore<String, String> store = TestingUtil.getFirstStore(cache);
            IntSet own = IntSets.immutableSet(segment);
            MarshallableEntry<String, String> late =
                    store.load(segment, "key").toCompletableFuture().join();
            store.removeSegments(own).toCompletableFuture().join();
            store.write(segment, late).toCompletableFuture().join();
            IntSet all = IntSets.mutableFrom(java.util.Set.of(segment, kept));
            store.addSegments(all).toCompletableFuture().join();
            assertNull(store.load(segment, "key").toCompletableFuture().join());
            assertNotNull(store.load(kept, "other").toCompletableFuture().join());
            store.write(segment, late).toCompletableFuture().join();
            store.addSegments(all).toCompletableFuture().join();
            assertEquals(store.load(segment, "key").toCompletableFuture().join().getValue(),
                    "value");
        }
    }

    /** With fewer it counted some of its entries, and iterated over these only. */
    public void aCacheThatHasOtherSegmentsThanItsEntriesDoesNotStart() throws IOException {
        ConfigurationBuilder fewer = new ConfigurationBuilder();
        fewer.clustering().hash().numSegments(64);
        ConfigurationBuilder others = new ConfigurationBuilder();
        others.clustering().hash().keyPartitioner(new RESPHashFunctionPartitioner());
        Configuration withFewer = flash(fewer).build();
        Map<Configuration, String> changed = Map.of(withFewer, "has 64 segments",
                flash(others).build(), "256 segments of RESPHashFunctionPartitioner",
                flash().segmented(false).build(), "segmented=\"false\"");
        within("changed", flash().build(), cache -> cache.put("key", "value"));
        changed.forEach((configuration, told) -> {
            String said = sentences(expectThrows(Exception.class,
                    () -> within("changed", configuration, cache -> cache.get("key"))));
            assertTrue(said.contains("has entries in 256 segments of HashFunctionPartitioner")
                    && said.contains(told) && said.contains("delete the file"), said);
        });
        within("changed", flash().build(), cache -> {
            assertEquals(cache.get("key"), "value");
            cache.clear();
        });
        // An empty one is as good as a new one.
        within("changed", withFewer, cache -> cache.put("key", "value"));
        within("changed", withFewer, cache -> assertEquals(cache.get("key"), "value"));
    }

    private static void within(String name, Configuration configuration,
            Consumer<Cache<String, String>> done) throws IOException {
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration(name, configuration);
            done.accept(container.getCache(name));
        }
    }
}
