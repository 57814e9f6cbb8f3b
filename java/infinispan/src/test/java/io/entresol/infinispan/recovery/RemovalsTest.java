package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertNull;

import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.write.RemoveCommand;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.context.Flag;
import org.infinispan.context.InvocationContext;
import org.infinispan.distribution.MagicKey;
import org.infinispan.interceptors.AsyncInterceptorChain;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.interceptors.impl.CacheWriterInterceptor;
import org.infinispan.statetransfer.OutdatedTopologyException;
import org.infinispan.test.TestingUtil;
import org.testng.annotations.Test;

/** Removals of entries that are only on flash, and of entries that one of a key's owners lacks. */
@Test(groups = "functional", testName = "infinispan.RemovalsTest")
public class RemovalsTest extends FlashClusterTest {
    private final CacheMode mode;
    private final boolean server;

    /** A cluster of programs with caches. */
    public RemovalsTest() {
        this(CacheMode.DIST_SYNC, false);
    }

    private RemovalsTest(CacheMode mode, boolean server) {
        this.mode = mode;
        this.server = server;
    }

    /** Each way that commands take from node to node. */
    @Override
    public Object[] factory() {
        return new Object[] {new RemovalsTest(), new RemovalsTest(CacheMode.DIST_SYNC, true),
            new RemovalsTest(CacheMode.REPL_SYNC, false)};
    }

    @Override
    CacheMode mode() {
        return mode;
    }

    @Override
    boolean isServer() {
        return server;
    }

    @Override
    protected String[] parameterNames() {
        return new String[] {"mode", "server"};
    }

    @Override
    protected Object[] parameterValues() {
        return new Object[] {mode, server};
    }

    public void aKeyThatOnlyABackupHasIsGoneOnceItIsRemovedOnAnyNode() {
        for (int node = 0; node < NODES; node++) {
            for (boolean inMemory : new boolean[] {true, false}) {
                MagicKey key = key();
                local(1).put(key, "left");
                if (!inMemory) {
                    local(1).evict(key);
                }
                assertEquals(local(1).get(key), "left");
                assertNull(local(0).get(key));
                cache(node).remove(key);
                assertIsGone(key, "removed by " + node);
            }
        }
    }

    /** Backups are asked without a look at what they have, the primary owner is not. */
    public void aRemovalTellsOfWhatItRemovesAndOfNothingWhereThereIsNothing() {
        for (int node = 0; node < NODES; node++) {
            MagicKey key = key();
            assertNull(cache(node).remove(key));
            cache(2).put(key, "there");
            evict(key);
            assertEquals(cache(node).remove(key), "there", "removed by " + node);
            assertNull(cache(node).remove(key));
            assertFalse(cache(node).remove(key, "there"));
            assertIsGone(key, "removed by " + node);
        }
    }

    /** Nothing was loaded, and so it was taken for nothing; as {@code DELETE} by REST was. */
    public void aRemovalThatWantsNoOldValueRemovesWhatIsOnFlashAlone() {
        for (int node = 0; node < NODES; node++) {
            for (boolean looked : new boolean[] {false, true}) {
                MagicKey key = key();
                cache(2).put(key, "there");
                evict(key);
                Cache<MagicKey, String> cache = cache(node);
                if (looked) {
                    assertEquals(cache.get(key), "there");
                }
                cache.getAdvancedCache().withFlags(Flag.IGNORE_RETURN_VALUES).remove(key);
                assertIsGone(key, "removed by " + node + (looked ? ", which has it" : ""));
            }
        }
    }

    /** It remembered that it had found nothing, and spared its store and the backups. */
    public void aRemovalThatIsTriedAgainIsOneOfWhatIsThereByThen() {
        MagicKey key = key();
        cache(2).put(key, "there");
        evict(key);
        AsyncInterceptorChain chain = TestingUtil.extractInterceptorChain(cache(0));
        chain.addInterceptorAfter(new Again(() -> assertEquals(cache(0).get(key), "there")),
                chain.findInterceptorExtending(CacheWriterInterceptor.class).getClass());
        try {
            cache(0).getAdvancedCache().withFlags(Flag.IGNORE_RETURN_VALUES).remove(key);
        } finally {
            chain.removeInterceptor(Again.class);
        }
        assertIsGone(key, "tried again");
    }

    /** Has the first removal be tried again, after something else. */
    private static final class Again extends BaseAsyncInterceptor {
        private final Runnable before;
        private boolean done;

        Again(Runnable before) {
            this.before = before;
        }

        @Override
        public Object visitCommand(InvocationContext context, VisitableCommand command) {
            return invokeNextThenApply(context, command, (same, removal, value) -> {
                if (!done && removal instanceof RemoveCommand) {
                    done = true;
                    before.run();
                    throw OutdatedTopologyException.RETRY_SAME_TOPOLOGY;
                }
                return value;
            });
        }
    }

    private MagicKey key() {
        return mode.isReplicated() ? new MagicKey(cache(0)) : new MagicKey(cache(0), cache(1));
    }

    private void evict(MagicKey key) {
        for (int node = 0; node < NODES; node++) {
            local(node).evict(key);
        }
    }

    private void assertIsGone(MagicKey key, String what) {
        for (int node = 0; node < NODES; node++) {
            assertNull(cache(node).get(key), what + ", read by " + node);
            assertFalse(local(node).containsKey(key), what + ", there on " + node);
        }
    }

    private AdvancedCache<MagicKey, String> local(int node) {
        Cache<MagicKey, String> cache = cache(node);
        return cache.getAdvancedCache().withFlags(Flag.CACHE_MODE_LOCAL);
    }
}
