package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.rows.Container;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.calcite.schema.Table;
import org.apache.calcite.schema.impl.AbstractSchema;
import org.infinispan.configuration.cache.Configuration;

/** The caches of a container whose values have an index, as tables. */
public final class CacheSchema extends AbstractSchema {
    /** Its name in each connection. */
    public static final String NAME = "caches";

    private final Container container;

    public CacheSchema(Container container) {
        this.container = container;
    }

    /** A cache of one type has its own name; one of several has a table for each, cache_Type. */
    @Override
    protected Map<String, Table> getTableMap() {
        Map<String, Table> tables = new TreeMap<>();
        for (String cache : container.cacheNames()) {
            Configuration configuration = container.configuration(cache);
            if (!configuration.indexing().enabled()) {
                continue;
            }
            Set<String> types = configuration.indexing().indexedEntityTypes();
            for (String type : types) {
                String name = types.size() == 1 ? cache
                        : cache + "_" + type.substring(type.lastIndexOf('.') + 1);
                tables.put(name, new CacheTable(container, cache, type));
            }
        }
        return tables;
    }
}
