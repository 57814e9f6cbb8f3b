package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertNull;
import static org.testng.Assert.assertTrue;

import java.net.URI;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import javax.cache.Cache;
import javax.cache.CacheManager;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.jcache.embedded.JCacheManager;
import org.infinispan.jcache.embedded.JCachingProvider;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.Test;

/** JCache on every node of a cluster finds entries that are only on flash. */
@Test(groups = "functional", testName = "infinispan.JCacheClusterTest")
public class JCacheClusterTest extends FlashClusterTest {
    private final CacheMode mode;
    private final List<Cache<String, String>> nodes = new ArrayList<>();

    /** Two owners of each entry. */
    public JCacheClusterTest() {
        this(CacheMode.DIST_SYNC);
    }

    private JCacheClusterTest(CacheMode mode) {
        this.mode = mode;
    }

    @Override
    public Object[] factory() {
        return new Object[] {new JCacheClusterTest(), new JCacheClusterTest(CacheMode.REPL_SYNC)};
    }

    @Override
    CacheMode mode() {
        return mode;
    }

    @Override
    protected String[] parameterNames() {
        return new String[] {"mode"};
    }

    @Override
    protected Object[] parameterValues() {
        return new Object[] {mode};
    }

    @BeforeClass(alwaysRun = true, dependsOnMethods = "createBeforeClass")
    void openCaches() {
        for (int node = 0; node < NODES; node++) {
            CacheManager caches = new JCacheManager(
                    URI.create("node" + node), manager(node), new JCachingProvider());
            nodes.add(caches.getCache(cache(node).getName()));
        }
    }

    public void eachNodeAnswersForAllEntries() {
        for (int key = 0; key < 10; key++) {
            for (Cache<String, String> node : nodes) {
                check(node, "key" + key);
            }
        }
    }

    /** Infinispan looked into memory alone: RESP's EXISTS counted what that had. */
    public void eachNodeTouchesWhatIsOnFlashAlone() {
        for (int key = 0; key < 10; key++) {
            String touched = "touched" + key;
            nodes.get(0).put(touched, "value");
            for (int node = 0; node < NODES; node++) {
                onFlashAlone(touched);
                assertTrue(touch(node, touched));
                assertTrue(touch(node, touched));
            }
            nodes.get(0).remove(touched);
            for (int node = 0; node < NODES; node++) {
                assertFalse(touch(node, touched));
            }
        }
    }

    private boolean touch(int node, String key) {
        return cache(node).getAdvancedCache().touch(key, false).toCompletableFuture().join();
    }

    private void check(Cache<String, String> node, String key) {
        node.put(key, "first");
        onFlashAlone(key);
        assertEquals(node.get(key), "first");
        onFlashAlone(key);
        assertTrue(node.containsKey(key));
        onFlashAlone(key);
        assertEquals(node.getAll(new HashSet<>(List.of(key, "none"))), Map.of(key, "first"));
        onFlashAlone(key);
        assertFalse(node.putIfAbsent(key, "second"));
        onFlashAlone(key);
        assertEquals(node.getAndPut(key, "third"), "first");
        onFlashAlone(key);
        assertTrue(node.replace(key, "third", "fourth"));
        onFlashAlone(key);
        assertEquals(node.getAndReplace(key, "fifth"), "fourth");
        onFlashAlone(key);
        assertFalse(node.remove(key, "other"));
        onFlashAlone(key);
        assertEquals(node.getAndRemove(key), "fifth");
        assertNull(node.get(key));
        assertFalse(node.remove(key));
    }

    private void onFlashAlone(String key) {
        for (int node = 0; node < NODES; node++) {
            cache(node).getAdvancedCache().getDataContainer().evict(key);
        }
    }
}
