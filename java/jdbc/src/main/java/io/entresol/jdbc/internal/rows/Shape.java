package io.entresol.jdbc.internal.rows;

import java.util.List;
import org.hibernate.search.engine.backend.index.IndexManager;
import org.infinispan.AdvancedCache;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.protostream.SerializationContext;
import org.infinispan.protostream.descriptors.FileDescriptor;
import org.infinispan.query.mapper.mapping.SearchIndexedEntity;
import org.infinispan.query.mapper.mapping.SearchMapping;

/**
 * The sources of columns: the schemas and the index. A schema that is registered anew is a new
 * object, and so is an index after an update of its schema. Two shapes are equal if nothing
 * changed.
 *
 * @param schemas all schemas, because types of one may be parts of another
 * @param index the index of the values; null: there is none
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
