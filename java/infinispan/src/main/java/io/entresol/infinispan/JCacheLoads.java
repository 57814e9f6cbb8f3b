package io.entresol.infinispan;

import org.infinispan.commands.FlagAffectedCommand;
import org.infinispan.commands.VisitableCommand;
import org.infinispan.context.InvocationContext;
import org.infinispan.context.impl.FlagBitSets;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.BaseAsyncInterceptor;

/**
 * Makes a cache that JCache has opened find entries that are only on flash. Infinispan's JCache
 * treats a store as a loader or writer of JSR 107, something outside of the cache, and most of its
 * operations skip it. So entries for which memory had no room would be absent to {@code get}, and
 * {@code putIfAbsent} would replace them. The store on flash is a part of the cache itself.
 *
 * <p>It stands before all other interceptors, so that owners that receive a command load the entry,
 * too. If the cache has loaders beside the store, {@link FlashBesideLoaders} does the rest.
 */
final class JCacheLoads extends BaseAsyncInterceptor {
    /** What JCache registers with each cache that it opens. */
    private static final String REGISTERED = "javax.cache.expiry.ExpiryPolicy";

    private final ComponentRegistry registry;

    JCacheLoads(ComponentRegistry registry) {
        this.registry = registry;
    }

    /** Whether JCache has opened a cache. */
    static boolean hasOpened(ComponentRegistry registry) {
        return registry.getComponent(Object.class, REGISTERED) != null;
    }

    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        if (command instanceof FlagAffectedCommand affected
                && affected.hasAnyFlag(FlagBitSets.SKIP_CACHE_LOAD) && hasOpened(registry)) {
            affected.setFlagsBitSet(
                    affected.getFlagsBitSet() & ~FlagBitSets.SKIP_CACHE_LOAD);
        }
        return invokeNext(context, command);
    }
}
