package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertNotNull;
import static org.testng.Assert.assertTrue;

import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.commons.CacheException;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.context.Flag;
import org.testng.annotations.Test;

/** A cluster with write-behind whose stores are full, so that no node may leave for that. */
@Test(groups = "functional", testName = "infinispan.FullBehindTest")
public class FullBehindTest extends FlashClusterTest {
    private static final int VALUE_BYTES = 1 << 20;
    private static final int MORE_THAN_FIT = 500;

    @Override
    void configure(ConfigurationBuilder builder) {
        builder.persistence().availabilityInterval(20).stores().get(0).async().enable();
    }

    /** It was dropped from the queues after some attempts, and more was told as done meanwhile. */
    public void whatWasToldAsDoneIsThereOnEachNodeThoughItsStoreIsFull() {
        String said = "";
        int told = 0;
        while (said.isEmpty() && told < MORE_THAN_FIT) {
            said = put(0, told);
            told += said.isEmpty() ? 1 : 0;
        }
        assertTrue(said.contains("is full on this node") && said.contains("Remove entries"), said);
        for (int turn = 0; turn < 2; turn++) {
            for (int key = 0; key < told; key++) {
                for (int node = 0; node < NODES; node++) {
                    assertNotNull(cache(node).get(key), key + " of " + told + " on " + node);
                    local(node).evict(key);
                }
            }
        }
        for (int key = 5; key < told; key++) {
            cache(1).remove(key);
        }
        for (int attempt = 0; attempt < MORE_THAN_FIT && !said.isEmpty(); attempt++) {
            said = put(2, told + attempt);
        }
        assertTrue(said.isEmpty(), said);
        for (int key = 0; key < 5; key++) {
            assertNotNull(cache(key % NODES).get(key));
        }
    }

    /** What is said of the refusal; empty: it is told as done. */
    private String put(int node, int key) {
        try {
            cache(node).put(key, new byte[VALUE_BYTES]);
            return "";
        } catch (CacheException refused) {
            StringBuilder said = new StringBuilder();
            for (Throwable each = refused; each != null; each = each.getCause()) {
                said.append(each.getMessage()).append('\n');
            }
            return said.toString();
        }
    }

    private AdvancedCache<Object, Object> local(int node) {
        Cache<Object, Object> cache = cache(node);
        return cache.getAdvancedCache().withFlags(Flag.CACHE_MODE_LOCAL);
    }
}
