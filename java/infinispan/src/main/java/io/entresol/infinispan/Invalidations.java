package io.entresol.infinispan;

import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.write.InvalidateCommand;
import org.infinispan.commons.util.concurrent.AggregateCompletionStage;
import org.infinispan.commons.util.concurrent.CompletionStages;
import org.infinispan.context.InvocationContext;
import org.infinispan.distribution.ch.KeyPartitioner;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.interceptors.InvocationSuccessFunction;
import org.infinispan.persistence.manager.PersistenceManager;

/**
 * Removes an entry that another node changed from this node's store, too. In a cache of mode
 * invalidation Infinispan removes it from memory alone, as if all nodes had one store, and the next
 * read would find the former value on flash.
 */
final class Invalidations extends BaseAsyncInterceptor {
    private final PersistenceManager stores;
    private final KeyPartitioner segments;
    private final InvocationSuccessFunction<InvalidateCommand> removed = this::removed;

    Invalidations(ComponentRegistry registry) {
        stores = registry.getComponent(PersistenceManager.class);
        segments = registry.getComponent(KeyPartitioner.class);
    }

    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        return command instanceof InvalidateCommand invalidation
                ? invokeNextThenApply(context, invalidation, removed)
                : invokeNext(context, command);
    }

    /** At once in a transaction, too: nobody needs a copy that is about to be worth nothing. */
    private Object removed(InvocationContext context, InvalidateCommand invalidation,
            Object value) {
        AggregateCompletionStage<Void> all = CompletionStages.aggregateCompletionStage();
        for (Object key : invalidation.getKeys()) {
            all.dependsOn(stores.deleteFromAllStores(key, segments.getSegment(key),
                    PersistenceManager.AccessMode.PRIVATE));
        }
        return delayedValue(all.freeze(), value);
    }
}
