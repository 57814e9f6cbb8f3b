package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertNotNull;
import static org.testng.Assert.assertNull;

import java.io.IOException;
import org.infinispan.Cache;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
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
}
