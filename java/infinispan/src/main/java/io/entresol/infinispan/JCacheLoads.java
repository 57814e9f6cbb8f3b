package io.entresol.infinispan;

import org.infinispan.commands.FlagAffectedCommand;
import org.infinispan.commands.VisitableCommand;
import org.infinispan.context.InvocationContext;
import org.infinispan.context.impl.FlagBitSets;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.BaseAsyncInterceptor;

/**
 * Has a cache that JCache has opened find what is on flash alone. To Infinispan's JCache a store is
 * a loader or writer of JSR 107, something outside of the cache, so that most of its operations skip
 * it: what memory had no room for was absent to {@code get}, and {@code putIfAbsent} replaced it.
 * The store on flash is a part of the cache itself.
 *
 * <p>Before all other interceptors, so that the owners of an entry load it, too, whom a command is
 * sent to. Where the cache has loaders beside the store, {@link FlashBesideLoaders} does what is
 * needed.
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
