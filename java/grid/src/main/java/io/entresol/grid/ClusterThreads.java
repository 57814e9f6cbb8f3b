package io.entresol.grid;

import org.infinispan.commons.executors.BlockingResource;
import org.jgroups.protocols.TP;
import org.jgroups.util.DefaultThreadFactory;
import org.jgroups.util.Util;

/**
 * Makes JGroups create its threads outside of Infinispan's group of threads that may block. A
 * server starts the cluster in such a thread, and each thread of JGroups would belong to that
 * group. Then a node would carry out requests in the thread that brings the cluster's messages, and
 * later messages would wait, among them the answers that the request needs.
 */
final class ClusterThreads {
    /** What the transport takes if nobody sets a factory. */
    private static final String NAME = "jgroups";

    private ClusterThreads() {
    }

    static void set(TP cluster) {
        cluster.setThreadFactory(new Factory().useVirtualThreads(
                cluster.useVirtualThreads() && Util.virtualThreadsAvailable()));
    }

    private static final class Factory extends DefaultThreadFactory {
        Factory() {
            super(NAME, false, true);
        }

        @Override
        protected Thread newThread(Runnable task, String name, String address, String cluster) {
            if (useVirtualThreads()) {
                return super.newThread(task, name, address, cluster);
            }
            Thread thread = new Thread(outside(), task, getThreadName(name, address, cluster));
            thread.setDaemon(createDaemons);
            return thread;
        }

        private static ThreadGroup outside() {
            ThreadGroup group = Thread.currentThread().getThreadGroup();
            while (group instanceof BlockingResource) {
                group = group.getParent();
            }
            return group;
        }
    }
}
