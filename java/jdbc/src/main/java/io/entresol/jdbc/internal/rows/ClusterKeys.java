package io.entresol.jdbc.internal.rows;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.infinispan.AdvancedCache;
import org.infinispan.commons.api.query.EntityEntry;
import org.infinispan.context.Flag;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.query.clustered.DistributedIndexedQueryImpl;
import org.infinispan.query.dsl.embedded.impl.QueryEngine;
import org.infinispan.query.impl.ComponentRegistryUtils;
import org.infinispan.query.impl.QueryDefinition;
import org.infinispan.query.objectfilter.impl.syntax.parser.IckleParsingResult;
import org.infinispan.server.core.query.impl.RemoteQueryManager;
import org.infinispan.util.function.SerializableFunction;

/**
 * The keys that the indexes of all nodes find, without their entries. The nodes send keys, and
 * Infinispan then gets the entries. Here it gets them from a cache that looks into no store and
 * asks no other node, so that nothing is read.
 */
final class ClusterKeys {
    /** What answers on each node; it is sent to them by name. */
    private static final SerializableFunction<AdvancedCache<?, ?>, QueryEngine<?>> ENGINE =
            cache -> ComponentRegistry.componentOf(cache, RemoteQueryManager.class)
                    .getQueryEngine(cache);

    private final AdvancedCache<Object, Object> unread;

    ClusterKeys(AdvancedCache<Object, Object> cache) {
        this.unread = cache.withFlags(Flag.CACHE_MODE_LOCAL, Flag.SKIP_CACHE_LOAD);
    }

    /** Keys of what an Ickle query of entries finds, in its order. */
    List<Object> of(String ickle, Map<String, Object> parameters, int offset, int most) {
        QueryDefinition asked = new QueryDefinition(ickle,
                IckleParsingResult.StatementType.SELECT, ENGINE, most);
        asked.setNamedParameters(parameters);
        asked.setHitCountAccuracy(Integer.MAX_VALUE);
        var query = new DistributedIndexedQueryImpl<Object>(asked, unread,
                ComponentRegistryUtils.getLocalQueryStatistics(unread), most, null);
        List<Object> keys = new ArrayList<>();
        try (var found = query.firstResult(offset).maxResults(most).entryIterator(false)) {
            found.forEachRemaining(entry -> keys.add(((EntityEntry<?, ?>) entry).key()));
        }
        return keys;
    }
}
