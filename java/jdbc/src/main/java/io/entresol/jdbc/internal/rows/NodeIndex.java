package io.entresol.jdbc.internal.rows;

import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.index.IndexState;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.hibernate.search.backend.lucene.search.query.LuceneSearchQuery;
import org.hibernate.search.engine.common.EntityReference;
import org.hibernate.search.engine.search.query.SearchScroll;
import org.hibernate.search.engine.search.query.SearchScrollResult;
import org.infinispan.AdvancedCache;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.protostream.descriptors.Descriptor;
import org.infinispan.query.dsl.embedded.impl.HibernateSearchPropertyHelper;
import org.infinispan.query.dsl.embedded.impl.QueryEngine;
import org.infinispan.query.dsl.embedded.impl.SearchQueryBuilder;
import org.infinispan.query.objectfilter.impl.ql.PropertyPath;
import org.infinispan.query.objectfilter.impl.syntax.parser.IckleParsingResult;
import org.infinispan.server.core.query.impl.RemoteQueryManager;

/**
 * This node's own index. It gives fields and keys together: Ickle has no word for the key of
 * ProtoStream values, but the language that it is translated into has.
 */
final class NodeIndex {
    /** Hits that are taken out of the index at once. */
    private static final int CHUNK = 1_000;

    private final AdvancedCache<?, ?> cache;
    private final String type;

    NodeIndex(AdvancedCache<?, ?> cache, String type) {
        this.cache = cache;
        this.type = type;
    }

    /**
     * Of each hit the fields that are wanted, and its key as the index has it.
     *
     * @param segments those that hits may be in; null: all
     */
    Steps<Object[]> hits(Asked asked, List<Column> wanted, BitSet segments) {
        IndexState.of(cache).requireComplete(cache.getName());
        SearchQueryBuilder query = query(asked, wanted);
        query.hitCountAccuracy(1);
        if (segments != null) {
            query.routeOnSegments(segments);
        }
        return asked.limit() == Long.MAX_VALUE && asked.offset() == 0
                ? new Hits(query.build().scroll(CHUNK))
                : first(query.build(), asked);
    }

    private static Steps<Object[]> first(LuceneSearchQuery<?> query,
            Asked asked) {
        Iterator<?> hits = query.fetchHits(asked.first(), asked.most()).iterator();
        return new Steps<>() {
            @Override
            protected Object[] step() {
                return hits.hasNext() ? fields(hits.next()) : null;
            }
        };
    }

    private SearchQueryBuilder query(Asked asked, List<Column> wanted) {
        // Another one after each start of the cache.
        @SuppressWarnings("unchecked")
        QueryEngine<Descriptor> engine = (QueryEngine<Descriptor>) (QueryEngine<?>)
                ComponentRegistry.componentOf(cache, RemoteQueryManager.class)
                        .getQueryEngine(cache);
        List<String> fields = wanted.stream().filter(column -> !column.isKey())
                .map(Column::ickle).toList();
        String select = fields.isEmpty() ? "" : "select " + String.join(", ", fields) + " ";
        IckleParsingResult<Descriptor> parsed =
                engine.parse(select + "from " + type + " p" + asked.ickle());
        return engine.transformParsingResult(withKey(parsed, wanted), asked.parameters());
    }

    /** The same query, with the key in its place among the fields. */
    private static IckleParsingResult<Descriptor> withKey(IckleParsingResult<Descriptor> parsed,
            List<Column> wanted) {
        List<PropertyPath<?>> paths = new ArrayList<>();
        List<Class<?>> types = new ArrayList<>();
        StringBuilder names = new StringBuilder();
        int field = 0;
        for (Column column : wanted) {
            names.append(column.name()).append(", ");
            paths.add(column.isKey() ? PropertyPath.make(HibernateSearchPropertyHelper.KEY)
                    : parsed.getProjectedPaths()[field]);
            types.add(column.isKey() ? Object.class : parsed.getProjectedTypes()[field]);
            field += column.isKey() ? 0 : 1;
        }
        // Infinispan remembers translations by this text, which is that of no other query.
        String text = names + "of " + parsed.getQueryString();
        return new IckleParsingResult<>(text, parsed.getStatementType(),
                Set.copyOf(parsed.getParameterNames()), parsed.getWhereClause(), null,
                parsed.getFilteringClause(), parsed.getTargetEntityName(),
                parsed.getTargetEntityMetadata(), paths.toArray(PropertyPath<?>[]::new),
                types.toArray(Class<?>[]::new), new Object[paths.size()], null,
                parsed.getSortFields());
    }

    private static Object[] fields(Object hit) {
        Object[] fields = hit instanceof List<?> several ? several.toArray() : new Object[] {hit};
        for (int place = 0; place < fields.length; place++) {
            if (fields[place] instanceof EntityReference reference) {
                fields[place] = reference.id();
            }
        }
        return fields;
    }

    /** All hits of a query, a chunk of them at a time. */
    private static final class Hits extends Steps<Object[]> {
        private final SearchScroll<?> scroll;
        private Iterator<?> chunk = List.of().iterator();

        Hits(SearchScroll<?> scroll) {
            this.scroll = scroll;
        }

        @Override
        protected Object[] step() {
            while (!chunk.hasNext()) {
                SearchScrollResult<?> next = scroll.next();
                if (!next.hasHits()) {
                    return null;
                }
                chunk = next.hits().iterator();
            }
            return fields(chunk.next());
        }

        @Override
        protected void end() {
            scroll.close();
        }
    }
}
