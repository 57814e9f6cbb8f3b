package io.entresol.infinispan;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Predicate;
import org.infinispan.commands.DataCommand;
import org.infinispan.commands.FlagAffectedCommand;
import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.read.GetAllCommand;
import org.infinispan.commands.write.WriteCommand;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.StoreConfiguration;
import org.infinispan.container.entries.CacheEntry;
import org.infinispan.container.entries.InternalCacheEntry;
import org.infinispan.container.entries.InternalCacheValue;
import org.infinispan.container.entries.MVCCEntry;
import org.infinispan.container.impl.EntryFactory;
import org.infinispan.container.impl.InternalDataContainer;
import org.infinispan.container.impl.InternalEntryFactory;
import org.infinispan.context.InvocationContext;
import org.infinispan.context.impl.FlagBitSets;
import org.infinispan.distribution.DistributionInfo;
import org.infinispan.distribution.DistributionManager;
import org.infinispan.distribution.ch.KeyPartitioner;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.persistence.internal.PersistenceUtil;
import org.infinispan.persistence.manager.PersistenceManager;
import org.infinispan.persistence.manager.PersistenceManagerImpl;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.MarshallableEntryFactory;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.infinispan.persistence.support.DelegatingNonBlockingStore;

/**
 * For caches that have loaders or writers of JSR 107 beside the store on flash: makes operations of
 * JCache that must not ask these use the store on flash all the same. {@link JCacheLoads} cannot
 * make them ask all stores there. An entry that a loader brings must go to flash, too: otherwise
 * the former entry would be back once memory has no room.
 */
final class FlashBesideLoaders extends BaseAsyncInterceptor {
    private final ComponentRegistry registry;
    private final PersistenceManager stores;
    private final KeyPartitioner segments;
    private final EntryFactory context;
    private final InternalEntryFactory entries;
    private final InternalDataContainer<Object, Object> memory;
    private final MarshallableEntryFactory<Object, Object> marshallable;
    /** Null in a cache of one node. */
    private final DistributionManager distribution;
    private final boolean segmented;

    @SuppressWarnings("unchecked")
    FlashBesideLoaders(ComponentRegistry registry, Configuration configuration) {
        this.registry = registry;
        stores = registry.getComponent(PersistenceManager.class);
        segments = registry.getComponent(KeyPartitioner.class);
        context = registry.getComponent(EntryFactory.class);
        entries = registry.getComponent(InternalEntryFactory.class);
        memory = registry.getComponent(InternalDataContainer.class);
        marshallable = registry.getComponent(MarshallableEntryFactory.class);
        distribution = registry.getDistributionManager();
        segmented = configuration.persistence().stores().stream()
                .filter(isOnFlash()).allMatch(StoreConfiguration::segmented);
    }

    /** Whether a cache needs it: loaders and writers are stores to Infinispan. */
    static boolean isNeeded(Configuration configuration) {
        return !configuration.persistence().stores().stream().allMatch(isOnFlash());
    }

    private static Predicate<StoreConfiguration> isOnFlash() {
        return EntresolStoreConfiguration.class::isInstance;
    }

    @Override
    public Object visitCommand(InvocationContext invocation, VisitableCommand command) {
        if (!(command instanceof FlagAffectedCommand affected) || keys(affected).isEmpty()
                || !JCacheLoads.hasOpened(registry)) {
            return invokeNext(invocation, command);
        }
        CompletionStage<Void> loaded = load(invocation, affected);
        if (!(command instanceof WriteCommand write) || invocation.isInTxScope()) {
            return asyncInvokeNext(invocation, command, loaded);
        }
        Map<Object, InternalCacheValue<Object>> before = new HashMap<>();
        CompletionStage<Void> noted = loaded.thenRun(() -> note(invocation, write, before));
        return makeStage(asyncInvokeNext(invocation, command, noted)).andHandle(invocation, write,
                (same, change, value, failure) -> failure == null
                        ? store(same, change, before, value)
                        : restore(same, before, failure));
    }

    /** One after another: the context is nobody's to change at the same time. */
    private CompletionStage<Void> load(InvocationContext invocation,
            FlagAffectedCommand command) {
        CompletionStage<Void> all = CompletableFuture.completedFuture(null);
        for (Object key : keys(command)) {
            CacheEntry<?, ?> entry = invocation.lookupEntry(key);
            int segment = segments.getSegment(key);
            if (entry == null || entry.getValue() != null || entry.skipLookup()
                    || !isOwner(segment)) {
                continue;
            }
            all = all.thenCompose(before -> onFlash().load(segmented ? segment : 0, key))
                    .thenAccept(found -> take(invocation, command, segment, found));
        }
        return all;
    }

    /** None of what iterates, counts or clears: there Infinispan asks the one store it can. */
    private static Collection<?> keys(FlagAffectedCommand command) {
        if (command instanceof WriteCommand write) {
            return write.loadType() == VisitableCommand.LoadType.DONT_LOAD ? List.of()
                    : write.getAffectedKeys();
        }
        if (command instanceof GetAllCommand several) {
            return several.getKeys();
        }
        return command instanceof DataCommand one ? List.of(one.getKey()) : List.of();
    }

    private boolean isOwner(int segment) {
        if (distribution == null) {
            return true;
        }
        DistributionInfo owners = distribution.getCacheTopology().getSegmentDistribution(segment);
        return owners.isReadOwner() || owners.isWriteOwner();
    }

    /** With write-behind the one that knows what waits for the store. */
    private NonBlockingStore<Object, Object> onFlash() {
        return ((PersistenceManagerImpl) stores).getAllStores(all -> true).stream()
                .map(each -> {
                    @SuppressWarnings("unchecked")
                    NonBlockingStore<Object, Object> one = (NonBlockingStore<Object, Object>) each;
                    return one;
                })
                .filter(FlashBesideLoaders::isOnFlash).findFirst().orElseThrow();
    }

    private static boolean isOnFlash(NonBlockingStore<?, ?> store) {
        return store instanceof EntresolStore || store instanceof DelegatingNonBlockingStore<?, ?> other
                && isOnFlash(other.delegate());
    }

    /** As Infinispan takes what it loads. */
    private void take(InvocationContext invocation, FlagAffectedCommand command, int segment,
            MarshallableEntry<Object, Object> found) {
        if (found == null) {
            return;
        }
        InternalCacheEntry<Object, Object> loaded = PersistenceUtil.convert(found, entries);
        memory.compute(segment, loaded.getKey(), (key, there, factory) ->
                there == null ? loaded : there);
        context.wrapExternalEntry(invocation, loaded.getKey(), loaded, true,
                command instanceof WriteCommand);
        if (invocation.lookupEntry(loaded.getKey()) instanceof MVCCEntry<?, ?> entry) {
            entry.setLoaded(true);
        }
    }

    /** What the cache has of the keys before the command; null of those that it lacks. */
    private void note(InvocationContext invocation, WriteCommand write,
            Map<Object, InternalCacheValue<Object>> before) {
        for (Object key : write.getAffectedKeys()) {
            CacheEntry<?, ?> entry = invocation.lookupEntry(key);
            if (entry != null && !entry.skipLookup() && isOwner(segments.getSegment(key))) {
                before.put(key, entry.getValue() == null ? null
                        : entries.getValueFromCtx(key, invocation));
            }
        }
    }

    /**
     * What goes to no writer, be it that the command says so, or that a loader brought it and nobody
     * changed it.
     */
    private Object store(InvocationContext invocation, WriteCommand write,
            Map<Object, InternalCacheValue<Object>> before, Object value) {
        boolean changes = write.hasAnyFlag(FlagBitSets.SKIP_CACHE_STORE);
        CompletionStage<Void> all = CompletableFuture.completedFuture(null);
        for (Map.Entry<Object, InternalCacheValue<Object>> old : before.entrySet()) {
            Object key = old.getKey();
            if (!(invocation.lookupEntry(key) instanceof MVCCEntry<?, ?> entry)) {
                continue;
            }
            boolean changed = entry.isChanged() || entry.isRemoved();
            if (changed ? changes : old.getValue() == null && entry.getValue() != null) {
                all = with(all, key, entry.isRemoved() ? null
                        : entries.getValueFromCtx(key, invocation));
            }
        }
        return delayedValue(all, value);
    }

    /** A writer refused the change, which flash may have taken meanwhile: memory does not. */
    private Object restore(InvocationContext invocation,
            Map<Object, InternalCacheValue<Object>> before, Throwable failure) {
        CompletionStage<Void> all = CompletableFuture.completedFuture(null);
        for (Map.Entry<Object, InternalCacheValue<Object>> old : before.entrySet()) {
            InternalCacheValue<Object> value = old.getValue();
            all = with(all, old.getKey(),
                    value == null ? fromLoader(invocation, old.getKey()) : value);
        }
        return asyncValue(all.handle((done, unable) -> failure)
                .thenCompose(CompletableFuture::failedFuture));
    }

    /** What a loader brought before the change; null if none did. */
    private InternalCacheValue<Object> fromLoader(InvocationContext invocation, Object key) {
        return invocation.lookupEntry(key) instanceof MVCCEntry<?, ?> entry
                && entry.getOldValue() != null
                ? entries.<Object, Object>create(key, entry.getOldValue(),
                        entry.getOldMetadata()).toInternalCacheValue() : null;
    }

    private CompletionStage<Void> with(CompletionStage<Void> others, Object key,
            InternalCacheValue<Object> value) {
        int segment = segments.getSegment(key);
        CompletionStage<?> change = value == null
                ? stores.deleteFromAllStores(key, segment, isOnFlash())
                : stores.writeToAllNonTxStores(
                        marshallable.create(key, value), segment, isOnFlash());
        return others.thenCombine(change, (before, done) -> null);
    }
}
