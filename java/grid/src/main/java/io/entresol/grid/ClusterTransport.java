package io.entresol.grid;

import org.jgroups.protocols.TP;
import org.jgroups.stack.Protocol;
import org.jgroups.stack.ProtocolHook;

/** What a node changes in the transport of JGroups, to its cluster and to its site. */
public final class ClusterTransport implements ProtocolHook {
    /** As JGroups makes it, from the name in the stack. */
    public ClusterTransport() {
    }

    @Override
    public void afterCreation(Protocol transport) {
        TP cluster = (TP) transport;
        ClusterThreads.set(cluster);
        ClusterTls.socketsOfThisNode().ifPresent(cluster::setSocketFactory);
    }
}
