package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertTrue;

import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.infinispan.Cache;
import org.infinispan.commands.CommandInvocationId;
import org.infinispan.commands.CommandsFactory;
import org.infinispan.commands.remote.CacheRpcCommand;
import org.infinispan.commands.triangle.BackupWriteCommand;
import org.infinispan.commons.IllegalLifecycleStateException;
import org.infinispan.distribution.MagicKey;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.lifecycle.ComponentStatus;
import org.infinispan.remoting.inboundhandler.AbstractDelegatingHandler;
import org.infinispan.remoting.inboundhandler.DeliverOrder;
import org.infinispan.remoting.inboundhandler.PerCacheInboundInvocationHandler;
import org.infinispan.remoting.inboundhandler.Reply;
import org.infinispan.test.TestingUtil;
import org.testng.annotations.Test;

/** A node's cache stops while others write to it. */
@Test(groups = "functional", testName = "infinispan.StoppingOwnersTest")
public class StoppingOwnersTest extends FlashClusterTest {
    public void aWriteWhoseBackupIsStoppingIsDoneByTheOwnersThatStay() throws Exception {
        Cache<MagicKey, String> stopping = cache(2);
        MagicKey key = new MagicKey(cache(1), stopping);
        AtomicReference<Future<Void>> stopped = new AtomicReference<>();
        TestingUtil.wrapInboundInvocationHandler(stopping, handler ->
                new Stopping(handler, stopping, () -> stopped.set(fork(stopping::stop))));
        cache(0).put(key, "kept");
        stopped.get().get(30, TimeUnit.SECONDS);
        assertEquals(stopping.getStatus(), ComponentStatus.TERMINATED);
        TestingUtil.waitForNoRebalance(cache(0), cache(1));
        for (int node = 0; node < 2; node++) {
            assertTrue(TestingUtil.extractCacheTopology(cache(node)).isReadOwner(key));
            assertEquals(cache(node).get(key), "kept");
        }
    }

    /** Answers a backup write as Infinispan does in a cache whose parts are stopped. */
    private static final class Stopping extends AbstractDelegatingHandler {
        private final Cache<?, ?> cache;
        private final Runnable stop;

        Stopping(PerCacheInboundInvocationHandler delegate, Cache<?, ?> cache, Runnable stop) {
            super(delegate);
            this.cache = cache;
            this.stop = stop;
        }

        @Override
        public void handle(CacheRpcCommand command, Reply reply, DeliverOrder order) {
            if (!(command instanceof BackupWriteCommand)) {
                delegate.handle(command, reply, order);
                return;
            }
            BackupWriteCommand write = (BackupWriteCommand) command;
            CommandInvocationId id = write.getCommandInvocationId();
            CacheRpcCommand failure = ComponentRegistry.componentOf(cache, CommandsFactory.class)
                    .buildExceptionAckCommand(id.getId(), new IllegalLifecycleStateException(
                            "Cannot wire or start components while the registry is not running"),
                            write.getTopologyId());
            cache.getAdvancedCache().getRpcManager().sendTo(
                    id.getAddress(), failure, DeliverOrder.NONE);
            stop.run();
        }
    }
}
