package io.entresol.infinispan.recovery;

import java.util.Objects;
import java.util.stream.Stream;
import org.infinispan.persistence.spi.PersistenceException;

/**
 * The starting cache was undeployed while this node was away, or belonged to another node that is
 * gone.
 */
public final class UndeployedException extends PersistenceException {
    private static final long serialVersionUID = 1;

    UndeployedException(String cache) {
        super("cache " + cache + " was undeployed while this node was away, or nobody has it any"
                + " more; what is here counts no more");
    }

    /** Whether a cache did not start for this reason. */
    public static boolean isCauseOf(Throwable failure) {
        return Stream.iterate(failure, Objects::nonNull, Throwable::getCause)
                .anyMatch(UndeployedException.class::isInstance);
    }
}
