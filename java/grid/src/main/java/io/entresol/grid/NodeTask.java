package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import java.util.List;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.remoting.transport.Transport;

/** Asks every node about itself, for example for its ports: JSON text from each. */
public final class NodeTask extends GridTask {
    static final String NAME = "entresol-node";
    /** Of the node that speaks with the other site: those that it hears. */
    static final String SITES = "sites";
    /** The most bytes that its heap takes. */
    static final String HEAP = "heap";

    /** As the server makes it. */
    public NodeTask() {
        super(NAME);
    }

    @Override
    String answer() {
        Json facts = Node.facts(System::getProperty)
                .set(HEAP, Runtime.getRuntime().maxMemory());
        Transport transport = Privileged.getComponent(
                context().getCacheManager(), Transport.class);
        if (transport != null && transport.isPrimaryRelayNode()) {
            facts.set(SITES, Json.make(List.copyOf(transport.getSitesView())));
        }
        return facts.toString();
    }
}
