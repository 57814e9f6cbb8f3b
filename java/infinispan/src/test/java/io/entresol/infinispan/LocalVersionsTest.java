package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.expectThrows;

import jakarta.transaction.RollbackException;
import jakarta.transaction.Transaction;
import jakarta.transaction.TransactionManager;
import org.infinispan.AdvancedCache;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.context.Flag;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.transaction.LockingMode;
import org.infinispan.transaction.TransactionMode;
import org.infinispan.transaction.lookup.EmbeddedTransactionManagerLookup;
import org.testng.annotations.Test;

/** Optimistic transactions of one node on entries that are only on flash. */
@Test(groups = "unit", testName = "infinispan.LocalVersionsTest")
public class LocalVersionsTest extends FolderTest {
    /** An entry that was loaded to be changed kept its version, which another one had read. */
    public void ofTwoTransactionsThatChangeWhatIsOnFlashAloneOneFails() throws Exception {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.transaction().transactionMode(TransactionMode.TRANSACTIONAL)
                .lockingMode(LockingMode.OPTIMISTIC)
                .transactionManagerLookup(new EmbeddedTransactionManagerLookup());
        try (DefaultCacheManager container = new DefaultCacheManager()) {
            container.defineConfiguration("versions", flash(builder).build());
            AdvancedCache<String, String> cache =
                    container.<String, String>getCache("versions").getAdvancedCache();
            TransactionManager transactions = cache.getTransactionManager();
            for (Flag flag : new Flag[] {Flag.IGNORE_RETURN_VALUES, Flag.FORCE_SYNCHRONOUS}) {
                cache.put("key", "zeroth");
                cache.put("key", "first");
                cache.evict("key");
                transactions.begin();
                assertEquals(cache.get("key"), "first");
                Transaction suspended = transactions.suspend();
                cache.evict("key");
                cache.withFlags(flag).put("key", "second");
                transactions.resume(suspended);
                cache.put("key", "third");
                expectThrows(RollbackException.class, transactions::commit);
                assertEquals(cache.get("key"), "second");
            }
        }
    }
}
