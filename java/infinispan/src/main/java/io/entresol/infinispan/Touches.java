package io.entresol.infinispan;

import org.infinispan.commands.VisitableCommand;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.context.InvocationContext;
import org.infinispan.distribution.DistributionManager;
import org.infinispan.expiration.impl.TouchCommand;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.interceptors.InvocationSuccessFunction;
import org.infinispan.persistence.util.EntryLoader;

/**
 * Makes a touch find entries that are only on flash. Infinispan looks in memory alone, so {@code
 * EXISTS} and {@code TOUCH} of its RESP endpoint would count only entries in memory. A touch loads
 * the entry, as a read does.
 */
final class Touches extends BaseAsyncInterceptor {
    private final EntryLoader<?, ?> loader;
    /** Null in a cache of one node. */
    private final DistributionManager distribution;
    private final InvocationSuccessFunction<TouchCommand> touched = this::touched;

    Touches(ComponentRegistry registry, Configuration configuration, EntryLoader<?, ?> loader) {
        this.loader = loader;
        distribution = configuration.clustering().cacheMode().isClustered()
                ? registry.getDistributionManager() : null;
    }

    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        return command instanceof TouchCommand touch && !touch.isTouchEvenIfExpired()
                ? invokeNextThenApply(context, touch, touched) : invokeNext(context, command);
    }

    /** An owner that is asked by another node answers for itself. */
    private Object touched(InvocationContext context, TouchCommand touch, Object found) {
        if (Boolean.TRUE.equals(found) || !isOwner(touch.getSegment())) {
            return found;
        }
        return asyncValue(loader.loadAndStoreInDataContainer(context, touch.getKey(),
                touch.getSegment(), touch).thenApply(entry -> entry != null));
    }

    private boolean isOwner(int segment) {
        return distribution == null || distribution.getCacheTopology()
                .getSegmentDistribution(segment).isReadOwner();
    }
}
