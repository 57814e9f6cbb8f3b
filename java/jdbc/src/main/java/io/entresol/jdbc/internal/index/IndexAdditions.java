package io.entresol.jdbc.internal.index;

import io.entresol.jdbc.internal.column.Wrapped;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.hibernate.search.engine.backend.work.execution.DocumentCommitStrategy;
import org.hibernate.search.engine.backend.work.execution.DocumentRefreshStrategy;
import org.hibernate.search.engine.backend.work.execution.OperationSubmitter;
import org.hibernate.search.mapper.pojo.model.spi.PojoRawTypeIdentifier;
import org.hibernate.search.mapper.pojo.route.DocumentRoutesDescriptor;
import org.hibernate.search.mapper.pojo.work.spi.PojoIndexer;
import org.infinispan.AdvancedCache;
import org.infinispan.protostream.ImmutableSerializationContext;
import org.infinispan.protostream.WrappedMessage;
import org.infinispan.protostream.descriptors.Descriptor;
import org.infinispan.query.mapper.mapping.SearchIndexedEntity;
import org.infinispan.query.mapper.mapping.SearchMapping;
import org.infinispan.query.mapper.session.impl.InfinispanIndexedTypeContext;
import org.infinispan.server.core.query.impl.ProtobufMetadataManagerImpl;
import org.infinispan.server.core.query.impl.indexing.ProtobufValueWrapper;

/**
 * Adds entries to an index; the calling thread makes their documents. Infinispan's own indexer has
 * one thread make the documents of all threads, and wakes two more for each entry. That indexer
 * still adds values that are no messages of ProtoStream, and types that index fields of their key.
 */
final class IndexAdditions {
    private final SearchMapping mapping;
    private final PojoIndexer indexer;
    private final ImmutableSerializationContext context;
    private final Descriptor wrapper;
    private final List<Class<?>> classes;
    /** The indexed types by name; null stands for a type that Infinispan's own indexer adds. */
    private final Map<String, PojoRawTypeIdentifier<?>> types = new HashMap<>();

    IndexAdditions(SearchMapping mapping, AdvancedCache<?, ?> cache) {
        this.mapping = mapping;
        this.indexer = mapping.getMappingSession().createIndexer();
        this.context = ProtobufMetadataManagerImpl.getSerializationContext(
                cache.getCacheManager());
        this.wrapper = context.getMessageDescriptor(WrappedMessage.PROTOBUF_TYPE_NAME);
        this.classes = List.copyOf(mapping.allIndexedEntityJavaClasses());
        for (SearchIndexedEntity each : mapping.allIndexedEntities()) {
            types.put(each.name(), each.javaClass() == byte[].class
                    && each instanceof InfinispanIndexedTypeContext<?> type
                    ? type.typeIdentifier() : null);
        }
    }

    /**
     * Adds an entry that the index lacks, if its type is indexed. Once the future is done, queries
     * find the entry after a refresh.
     *
     * @param key the key as the index has it
     * @param value the value as the index takes it
     */
    CompletableFuture<?> add(Object key, Object value, int segment) {
        if (value instanceof ProtobufValueWrapper message) {
            Wrapped wrapped = Wrapped.of(wrapper, message.getBinary());
            String name = wrapped.type(context);
            if (!types.containsKey(name)) {
                return CompletableFuture.completedFuture(null);
            }
            PojoRawTypeIdentifier<?> type = types.get(name);
            if (type != null) {
                return indexer.add(type, key,
                        DocumentRoutesDescriptor.fromLegacyRoutingKey(String.valueOf(segment)),
                        wrapped.message(), DocumentCommitStrategy.NONE,
                        DocumentRefreshStrategy.NONE, OperationSubmitter.blocking());
            }
        }
        return mapping.typeIsIndexed(value, classes)
                ? mapping.getSearchIndexer().add(key, String.valueOf(segment), value)
                : CompletableFuture.completedFuture(null);
    }
}
