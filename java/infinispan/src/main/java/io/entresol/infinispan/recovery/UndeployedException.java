package io.entresol.infinispan.recovery;

import org.infinispan.persistence.spi.PersistenceException;

/** The cache that starts was undeployed while this node was away, and nobody has it any more. */
public final class UndeployedException extends PersistenceException {
    private static final long serialVersionUID = 1;

    UndeployedException(String cache) {
        super("cache " + cache + " was undeployed while this node was away; its entries here count"
                + " no more");
    }
}
