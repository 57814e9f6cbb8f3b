package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertNull;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.transaction.LockingMode;
import org.infinispan.transaction.TransactionMode;
import org.infinispan.transaction.lookup.EmbeddedTransactionManagerLookup;
import org.testng.annotations.Test;

/** Caches whose nodes have their own copies of entries elsewhere, and inform others of changes. */
@Test(groups = "functional", testName = "infinispan.InvalidationsTest")
public class InvalidationsTest extends FlashClusterTest {
    private final LockingMode transactions;

    /** Without transactions. */
    public InvalidationsTest() {
        this(null);
    }

    private InvalidationsTest(LockingMode transactions) {
        this.transactions = transactions;
    }

    /** Each way in which nodes are told. */
    @Override
    public Object[] factory() {
        return new Object[] {new InvalidationsTest(), new InvalidationsTest(LockingMode.OPTIMISTIC),
            new InvalidationsTest(LockingMode.PESSIMISTIC)};
    }

    @Override
    CacheMode mode() {
        return CacheMode.INVALIDATION_SYNC;
    }

    @Override
    void configure(ConfigurationBuilder builder) {
        if (transactions != null) {
            builder.transaction().transactionMode(TransactionMode.TRANSACTIONAL)
                    .lockingMode(transactions)
                    .transactionManagerLookup(new EmbeddedTransactionManagerLookup());
        }
    }

    @Override
    protected String[] parameterNames() {
        return new String[] {"transactions"};
    }

    @Override
    protected Object[] parameterValues() {
        return new Object[] {transactions};
    }

    /** It was gone from memory, and was found on flash. */
    public void whatAnotherNodeChangedIsNotReadAsItWas() {
        for (boolean inMemory : new boolean[] {true, false}) {
            told("put", inMemory, () -> cache(0).put("put", "new"));
            assertEquals(cache(0).get("put"), "new");
            told("all", inMemory, () -> cache(0).putAll(Map.of("all", "new", "other", "new")));
            assertEquals(cache(0).get("all"), "new");
            told("ends", inMemory, () -> cache(0).put("ends", "new", 1, TimeUnit.HOURS));
            told("removed", inMemory, () -> cache(0).remove("removed"));
            told("cleared", inMemory, () -> cache(0).clear());
        }
    }

    /** Changes an entry of which other nodes have a copy, which is not there afterwards. */
    private void told(String key, boolean inMemory, Runnable change) {
        for (int node = 1; node < NODES; node++) {
            cache(node).putForExternalRead(key, "old");
            assertEquals(cache(node).get(key), "old");
            if (!inMemory) {
                cache(node).evict(key);
            }
        }
        change.run();
        for (int node = 1; node < NODES; node++) {
            assertNull(cache(node).get(key), key + " on " + node);
        }
    }
}
