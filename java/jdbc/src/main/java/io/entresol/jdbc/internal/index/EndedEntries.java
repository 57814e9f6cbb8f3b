package io.entresol.jdbc.internal.index;

import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.infinispan.AdvancedCache;
import org.infinispan.cache.impl.AbstractDelegatingCache;
import org.infinispan.context.Flag;
import org.infinispan.distribution.ch.KeyPartitioner;
import org.infinispan.encoding.DataConversion;
import org.infinispan.expiration.impl.InternalExpirationManager.ExpirationConsumer;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.metadata.Metadata;
import org.infinispan.metadata.impl.PrivateMetadata;
import org.infinispan.query.mapper.mapping.SearchMapping;
import org.infinispan.query.mapper.work.SearchIndexer;
import org.jboss.logging.Logger;

/**
 * Takes expired entries out of the index of a cache that is not clustered. Infinispan issues no
 * command for them there, and its indexing follows commands.
 */
public final class EndedEntries implements ExpirationConsumer<Object, Object> {
    private static final Logger LOG = Logger.getLogger(EndedEntries.class.getPackageName());

    /** As it keeps them: keys and values need no conversion. */
    private final AdvancedCache<Object, Object> cache;
    private final SearchMapping mapping;
    private final DataConversion keys;
    private final DataConversion values;
    private final KeyPartitioner partitioner;

    @SuppressWarnings("unchecked")
    public EndedEntries(AdvancedCache<?, ?> cache, SearchMapping mapping) {
        this.cache = (AdvancedCache<Object, Object>) AbstractDelegatingCache.unwrapCache(cache)
                .getAdvancedCache().withFlags(Flag.SKIP_STATISTICS);
        this.mapping = mapping;
        this.keys = cache.getKeyDataConversion();
        this.values = cache.getValueDataConversion();
        this.partitioner = ComponentRegistry.componentOf(cache, KeyPartitioner.class);
    }

    /** Nobody else changes the entry meanwhile in memory; Infinispan waits, so this must not. */
    @Override
    public void expired(Object key, Object value, Metadata metadata, PrivateMetadata internal) {
        follow(key, null).exceptionally(failure -> {
            LOG.warnf(failure, "an entry of cache %s ended and may still be in its index; queries "
                    + "count it until the cache starts again", cache.getName());
            return null;
        });
    }

    /**
     * Has the index know what the cache is believed to have, then looks at whether it has. What was
     * on flash only may be written while it is told to have ended.
     */
    private CompletionStage<Void> follow(Object key, Object believed) {
        SearchIndexer indexer = mapping.getSearchIndexer();
        Object id = keys.extractIndexable(key, false);
        String segment = String.valueOf(partitioner.getSegment(key));
        CompletableFuture<?> told = believed == null ? indexer.purge(id, segment)
                : indexer.addOrUpdate(id, segment, values.extractIndexable(believed, false));
        return told.thenCompose(done -> cache.getAsync(key)).thenCompose(found ->
                Objects.equals(found, believed) ? CompletableFuture.completedFuture(null)
                        : follow(key, found));
    }
}
