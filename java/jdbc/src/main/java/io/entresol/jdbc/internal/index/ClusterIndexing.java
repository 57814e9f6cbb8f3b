package io.entresol.jdbc.internal.index;

import java.util.concurrent.CompletableFuture;
import org.infinispan.AdvancedCache;
import org.infinispan.commands.write.PutKeyValueCommand;
import org.infinispan.commands.write.RemoveCommand;
import org.infinispan.container.entries.CacheEntry;
import org.infinispan.context.InvocationContext;
import org.infinispan.context.impl.FlagBitSets;
import org.infinispan.distribution.ch.KeyPartitioner;
import org.infinispan.encoding.DataConversion;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.DDAsyncInterceptor;
import org.infinispan.query.mapper.mapping.SearchMapping;

/**
 * The parts that Infinispan's own indexing lacks for entries on flash and on several nodes. It
 * takes an entry out of the index of a backup only if the backup has the old value in memory, and
 * does not read it from flash for that. And it assumes that an index holds none of the entries that
 * another node sends, but an index that was rebuilt from the store may hold them.
 */
public final class ClusterIndexing extends DDAsyncInterceptor {
    private final AdvancedCache<?, ?> cache;
    private final DataConversion keys;
    private final KeyPartitioner partitioner;

    public ClusterIndexing(AdvancedCache<?, ?> cache) {
        this.cache = cache;
        this.keys = cache.getKeyDataConversion();
        this.partitioner = ComponentRegistry.componentOf(cache, KeyPartitioner.class);
    }

    @Override
    public Object visitPutKeyValueCommand(InvocationContext context, PutKeyValueCommand command) {
        if (command.hasAnyFlag(FlagBitSets.PUT_FOR_STATE_TRANSFER)) {
            command.setFlagsBitSet(command.getFlagsBitSet() & ~FlagBitSets.SKIP_INDEX_CLEANUP);
        }
        return invokeNext(context, command);
    }

    @Override
    public Object visitRemoveCommand(InvocationContext context, RemoveCommand command) {
        if (context.isOriginLocal() || command.hasAnyFlag(FlagBitSets.SKIP_INDEXING)) {
            return invokeNext(context, command);
        }
        return invokeNextThenApply(context, command, (of, removal, result) -> {
            CacheEntry<?, ?> entry = of.lookupEntry(removal.getKey());
            return removal.isSuccessful() && entry != null && entry.isChanged()
                    ? delayedValue(forget(removal.getKey()), result) : result;
        });
    }

    private CompletableFuture<?> forget(Object key) {
        // The index is another one after each start of the cache.
        return ComponentRegistry.componentOf(cache, SearchMapping.class).getSearchIndexer().purge(
                keys.extractIndexable(key, false), String.valueOf(partitioner.getSegment(key)));
    }
}
