package io.entresol.jdbc;

import java.util.List;
import org.hibernate.search.engine.backend.index.IndexManager;
import org.infinispan.AdvancedCache;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.protostream.SerializationContext;
import org.infinispan.protostream.descriptors.FileDescriptor;
import org.infinispan.query.mapper.mapping.SearchIndexedEntity;
import org.infinispan.query.mapper.mapping.SearchMapping;

/**
 * What columns are made of: the schemas, of which each that is registered anew is another one, and
 * the index, which is another one once it was told of them. Two are equal if nothing changed.
 *
 * @param schemas all of them: one may have parts of its types in another
 * @param index that of the values; null: there is none
 */
record Shape(List<FileDescriptor> schemas, IndexManager index) {
    static Shape of(AdvancedCache<?, ?> cache, String type, SerializationContext schemas) {
        SearchMapping mapping = ComponentRegistry.componentOf(cache, SearchMapping.class);
        SearchIndexedEntity entity = mapping == null ? null : mapping.indexedEntity(type);
        return new Shape(List.copyOf(schemas.getFileDescriptors().values()),
                entity == null ? null : entity.indexManager());
    }

    /** Whether the index knows a field. */
    boolean indexes(String field) {
        return index != null && index.descriptor().field(field).isPresent();
    }
}
