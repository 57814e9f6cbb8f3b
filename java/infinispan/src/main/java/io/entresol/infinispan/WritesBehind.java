package io.entresol.infinispan;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.tx.PrepareCommand;
import org.infinispan.commands.write.ClearCommand;
import org.infinispan.commands.write.EvictCommand;
import org.infinispan.commands.write.InvalidateCommand;
import org.infinispan.commands.write.RemoveCommand;
import org.infinispan.commands.write.WriteCommand;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.context.InvocationContext;
import org.infinispan.context.impl.FlagBitSets;
import org.infinispan.distribution.DistributionManager;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.interceptors.InvocationStage;
import org.infinispan.interceptors.InvocationSuccessFunction;

/**
 * Refuses changes of a cache with write-behind while its store takes none: they would be
 * acknowledged, and wait in the queue for as long as the cache runs. Changes that already wait
 * there stay: {@link Unwritten}. Changes that wait for room in the queue are refused, too. Removals
 * work while the store is full, and make room.
 */
final class WritesBehind extends BaseAsyncInterceptor {
    private final GlobalConfiguration container;
    private final String cache;
    /** Null in a cache of one node. */
    private final DistributionManager distribution;

    WritesBehind(ComponentRegistry registry, String cache) {
        this.container = registry.getGlobalComponentRegistry().getGlobalConfiguration();
        this.cache = cache;
        this.distribution = registry.getDistributionManager();
    }

    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        List<? extends WriteCommand> changes = changes(command);
        if (changes.isEmpty()) {
            return invokeNext(context, command);
        }
        boolean removes = changes.stream().allMatch(WritesBehind::removes);
        CompletionStage<Void> refusal = removes ? OpenStores.refusalOfRemovals(container, cache)
                : OpenStores.refusalBehind(container, cache);
        if (refusal != null) {
            return asyncValue(refusal);
        }
        changes.stream().filter(change -> !removes(change)).forEach(change ->
                OpenStores.putting(container, cache, change.getAffectedKeys()));
        Object result = invokeNext(context, command);
        if (!(result instanceof InvocationStage stage) || stage.isDone()) {
            return result;
        }
        CompletableFuture<Object> queued = stage.toCompletableFuture();
        return asyncValue(removes ? OpenStores.queuedRemoval(container, cache, queued)
                : OpenStores.queued(container, cache, queued));
    }

    /** Those of a command that this node's store gets. */
    private List<? extends WriteCommand> changes(VisitableCommand command) {
        List<? extends WriteCommand> all = command instanceof PrepareCommand prepare
                ? prepare.getModifications()
                : command instanceof WriteCommand write ? List.of(write) : List.of();
        return all.isEmpty() ? all : all.stream().filter(this::isStored).toList();
    }

    private boolean isStored(WriteCommand write) {
        if (write instanceof EvictCommand || write instanceof InvalidateCommand
                || write.hasAnyFlag(FlagBitSets.SKIP_CACHE_STORE)) {
            return false;
        }
        Collection<?> keys = write.getAffectedKeys();
        return distribution == null || keys.isEmpty()
                || keys.stream().anyMatch(distribution.getCacheTopology()::isWriteOwner);
    }

    private static boolean removes(WriteCommand write) {
        return write instanceof RemoveCommand || write instanceof ClearCommand;
    }

    /** Takes what a removal removes from a full store before the removal is in the queue. */
    static final class Room extends BaseAsyncInterceptor {
        private final GlobalConfiguration container;
        private final String cache;
        private final InvocationSuccessFunction<WriteCommand> removed = this::removed;

        Room(ComponentRegistry registry, String cache) {
            this.container = registry.getGlobalComponentRegistry().getGlobalConfiguration();
            this.cache = cache;
        }

        @Override
        public Object visitCommand(InvocationContext context, VisitableCommand command) {
            return command instanceof WriteCommand write && removes(write)
                    // Evicted entries stay in the store.
                    && !(command instanceof EvictCommand)
                    && !context.isInTxScope() && !write.hasAnyFlag(FlagBitSets.SKIP_CACHE_STORE)
                    ? invokeNextThenApply(context, write, removed)
                    : invokeNext(context, command);
        }

        private Object removed(InvocationContext context, WriteCommand removal, Object value) {
            return removal.isSuccessful() ? delayedValue(OpenStores.makeRoom(
                    container, cache, removal.getAffectedKeys()), value) : value;
        }
    }
}
