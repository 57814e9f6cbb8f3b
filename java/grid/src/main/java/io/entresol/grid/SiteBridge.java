package io.entresol.grid;

import java.util.concurrent.CountDownLatch;
import org.jgroups.stack.Protocol;
import org.jgroups.stack.ProtocolHook;

/**
 * Makes a node join the other site once its caches have started, not when it joins its cluster.
 * Otherwise the other site would send it changes of a cache that it has not reached, hear that
 * there is no such cache, and send nothing more until somebody told it to.
 */
public final class SiteBridge implements ProtocolHook {
    private static final CountDownLatch SERVES = new CountDownLatch(1);

    /** As JGroups makes it, from the name in the stack. */
    public SiteBridge() {
    }

    /** The node of this process has all of its caches. */
    static void open() {
        SERVES.countDown();
    }

    /** In a thread of its own: see {@code async_relay_creation} of the stack. */
    @Override
    public void afterCreation(Protocol transport) {
        new ClusterTransport().afterCreation(transport);
        try {
            SERVES.await();
        } catch (InterruptedException ends) {
            Thread.currentThread().interrupt();
        }
    }
}
