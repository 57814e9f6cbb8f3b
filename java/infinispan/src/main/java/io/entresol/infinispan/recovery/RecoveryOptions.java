package io.entresol.infinispan.recovery;

import org.infinispan.configuration.cache.StoreConfiguration;
import org.infinispan.persistence.spi.InitializationContext;

/**
 * How a cache recovers.
 *
 * @param timeoutMillis how long members wait for each other
 * @param missing what happens after that time
 */
public record RecoveryOptions(long timeoutMillis, MissingMembers missing) {
    /** Throws if the cache is not configured so that its stores can be a source of recovery. */
    public static void check(InitializationContext context, StoreConfiguration store,
            String durability) {
        Requirements.check(context.getCache().getName(), context.getGlobalConfiguration(),
                context.getCache().getCacheConfiguration(), store, durability);
    }
}
