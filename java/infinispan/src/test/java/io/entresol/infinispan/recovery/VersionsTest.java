package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertNull;
import static org.testng.Assert.assertTrue;
import static org.testng.Assert.expectThrows;

import jakarta.transaction.RollbackException;
import jakarta.transaction.TransactionManager;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.container.versioning.EntryVersion;
import org.infinispan.context.Flag;
import org.infinispan.distribution.MagicKey;
import org.infinispan.test.TestingUtil;
import org.infinispan.transaction.LockingMode;
import org.infinispan.transaction.TransactionMode;
import org.infinispan.transaction.lookup.EmbeddedTransactionManagerLookup;
import org.testng.annotations.Test;

/**
 * Optimistic transactions on entries that are only on flash, and on entries that one of a key's
 * owners lacks.
 */
@Test(groups = "functional", testName = "infinispan.VersionsTest")
public class VersionsTest extends FlashClusterTest {
    private final CacheMode mode;

    /** Two owners of each entry. */
    public VersionsTest() {
        this(CacheMode.DIST_SYNC);
    }

    private VersionsTest(CacheMode mode) {
        this.mode = mode;
    }

    @Override
    public Object[] factory() {
        return new Object[] {new VersionsTest(), new VersionsTest(CacheMode.REPL_SYNC)};
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

    @Override
    void configure(ConfigurationBuilder builder) {
        builder.transaction().transactionMode(TransactionMode.TRANSACTIONAL)
                .lockingMode(LockingMode.OPTIMISTIC)
                .transactionManagerLookup(new EmbeddedTransactionManagerLookup());
    }

    /** On the backup itself it failed for good: the primary compared a version with none. */
    public void aKeyThatOnlyABackupHasIsGoneOnceItIsRemovedOnAnyNode() {
        for (int node = 0; node < NODES; node++) {
            for (boolean inMemory : new boolean[] {true, false}) {
                MagicKey key = key();
                cache(2).put(key, "left");
                local(0).remove(key);
                evict(key, inMemory);
                assertNull(local(0).get(key));
                assertEquals(local(1).get(key), "left");
                cache(node).remove(key);
                evict(key, false);
                for (int each = 0; each < NODES; each++) {
                    assertNull(cache(each).get(key), "removed by " + node + ", read by " + each);
                    assertFalse(local(each).containsKey(key),
                            "removed by " + node + ", there on " + each);
                }
            }
        }
    }

    public void aRemovalReturnsWhatItRemovesOnEachNode() {
        for (int node = 0; node < NODES; node++) {
            MagicKey key = key();
            assertNull(cache(node).remove(key));
            cache(2).put(key, "there");
            evict(key, false);
            assertFalse(cache(node).remove(key, "other"));
            assertEquals(cache(node).remove(key), "there", "removed by " + node);
            assertNull(cache(node).remove(key));
            cache(2).put(key, "again");
            assertTrue(cache(node).remove(key, "again"));
        }
    }

    /** Its versions on the owners were not the same, and every change failed. */
    public void whatIsOnFlashAloneIsChangedOnEachNode() {
        for (int node = 0; node < NODES; node++) {
            MagicKey key = key();
            MagicKey other = key();
            cache(2).put(key, "0");
            cache(2).put(other, "0");
            evict(key, false);
            assertEquals(cache(node).put(key, "1"), "0", "put by " + node);
            evict(key, false);
            assertTrue(cache(node).replace(key, "1", "2"));
            evict(key, false);
            assertEquals(cache(node).replace(key, "3"), "2");
            evict(key, false);
            assertEquals(cache(node).putIfAbsent(key, "no"), "3");
            evict(key, false);
            Cache<MagicKey, String> cache = cache(node);
            assertEquals(cache.compute(key, (same, old) -> old + "4"), "34");
            evict(key, false);
            evict(other, false);
            cache.putAll(Map.of(key, "5", other, "5"));
            for (int each = 0; each < NODES; each++) {
                assertEquals(cache(each).get(key), "5");
                assertEquals(cache(each).get(other), "5");
            }
        }
    }

    /** Backups' stores got the version before, and it was compared with others'. */
    public void allOwnersHaveTheSameVersionInMemoryAndOnFlash() {
        MagicKey key = key();
        for (int round = 0; round < 3; round++) {
            for (int node = 0; node < NODES; node++) {
                cache(node).put(key, round + " by " + node);
                Set<EntryVersion> versions = new HashSet<>();
                for (int owner = 0; owner < 2; owner++) {
                    versions.add(local(owner).getDataContainer().peek(key)
                            .getInternalMetadata().entryVersion());
                    int segment = TestingUtil.getSegmentForKey(key, cache(owner));
                    versions.add(TestingUtil.getFirstStore(cache(owner)).load(segment, key)
                            .toCompletableFuture().join().getInternalMetadata().entryVersion());
                }
                assertEquals(versions.size(), 1, versions.toString());
                evict(key, round == 0);
            }
        }
    }

    /** The version began anew where the entry was not in memory, and was the one that was read. */
    public void ofTwoTransactionsThatChangeWhatIsOnFlashAloneOneFails() throws Exception {
        for (int node = 0; node < NODES; node++) {
            for (int other = 0; other < NODES; other++) {
                for (Flag flag : new Flag[] {Flag.IGNORE_RETURN_VALUES, Flag.FORCE_SYNCHRONOUS}) {
                    MagicKey key = key();
                    cache(2).put(key, "first");
                    evict(key, false);
                    TransactionManager transactions = local(node).getTransactionManager();
                    transactions.begin();
                    assertEquals(cache(node).get(key), "first");
                    var suspended = transactions.suspend();
                    evict(key, false);
                    Cache<MagicKey, String> cache = cache(other);
                    cache.getAdvancedCache().withFlags(flag).put(key, "second");
                    transactions.resume(suspended);
                    cache(node).put(key, "third");
                    expectThrows(RollbackException.class, transactions::commit);
                    assertEquals(cache(node).get(key), "second", node + " beside " + other);
                }
            }
        }
    }

    /** Who takes an entry is the only one that does, wherever it runs. */
    public void ofTwoTransactionsThatRemoveAKeyOneFails() throws Exception {
        for (int node = 0; node < NODES; node++) {
            MagicKey key = key();
            cache(2).put(key, "there");
            evict(key, false);
            TransactionManager transactions = local(node).getTransactionManager();
            transactions.begin();
            assertEquals(cache(node).remove(key), "there");
            var suspended = transactions.suspend();
            assertEquals(cache((node + 1) % NODES).remove(key), "there");
            transactions.resume(suspended);
            expectThrows(RollbackException.class, transactions::commit);
            assertNull(cache(node).get(key));
        }
    }

    public void aTransactionRemovesWhatItPutItself() throws Exception {
        for (int node = 0; node < NODES; node++) {
            MagicKey key = key();
            TransactionManager transactions = local(node).getTransactionManager();
            transactions.begin();
            cache(node).put(key, "mine");
            assertEquals(cache(node).remove(key), "mine");
            transactions.commit();
            assertNull(cache(node).get(key));
        }
    }

    private MagicKey key() {
        return mode.isReplicated() ? new MagicKey(cache(0)) : new MagicKey(cache(0), cache(1));
    }

    private void evict(MagicKey key, boolean keeps) {
        for (int node = 0; node < NODES && !keeps; node++) {
            local(node).evict(key);
        }
    }

    private AdvancedCache<MagicKey, String> local(int node) {
        Cache<MagicKey, String> cache = cache(node);
        return cache.getAdvancedCache().withFlags(Flag.CACHE_MODE_LOCAL);
    }
}
