package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertNull;

import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.context.Flag;
import org.infinispan.distribution.MagicKey;
import org.testng.annotations.Test;

/** Removals of what one of a key's two owners lacks, as after a put that its store refused. */
@Test(groups = "functional", testName = "infinispan.RemovalsTest")
public class RemovalsTest extends FlashClusterTest {
    public void aKeyThatOnlyABackupHasIsGoneOnceItIsRemovedOnAnyNode() {
        for (int node = 0; node < NODES; node++) {
            for (boolean inMemory : new boolean[] {true, false}) {
                MagicKey key = new MagicKey(cache(0), cache(1));
                local(1).put(key, "left");
                if (!inMemory) {
                    local(1).evict(key);
                }
                assertEquals(local(1).get(key), "left");
                assertNull(local(0).get(key));
                cache(node).remove(key);
                for (int other = 0; other < NODES; other++) {
                    assertNull(cache(other).get(key), "removed by " + node + ", read by " + other);
                }
                assertFalse(local(1).containsKey(key));
            }
        }
    }

    /** Backups are asked without a look at what they have, the primary owner is not. */
    public void aRemovalTellsOfWhatItRemovesAndOfNothingWhereThereIsNothing() {
        MagicKey key = new MagicKey(cache(0), cache(1));
        assertNull(cache(0).remove(key));
        cache(2).put(key, "there");
        local(0).evict(key);
        assertEquals(cache(0).remove(key), "there");
        assertNull(cache(0).remove(key));
        assertFalse(cache(0).remove(key, "there"));
    }

    private AdvancedCache<MagicKey, String> local(int node) {
        Cache<MagicKey, String> cache = cache(node);
        return cache.getAdvancedCache().withFlags(Flag.CACHE_MODE_LOCAL);
    }
}
