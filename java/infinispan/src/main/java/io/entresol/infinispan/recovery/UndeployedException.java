package io.entresol.infinispan.recovery;

import org.infinispan.persistence.spi.PersistenceException;

/** The cache that starts was undeployed while this node was away, or was another's that is gone. */
public final class UndeployedException extends PersistenceException {
    private static final long serialVersionUID = 1;

    UndeployedException(String cache) {
        super("cache " + cache + " was undeployed while this node was away, or nobody has it any"
                + " more; what is here counts no more");
    }
}
