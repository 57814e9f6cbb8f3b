package io.entresol.jdbc.internal.rows;

import io.entresol.jdbc.internal.aggregate.Totals;
import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.column.ColumnType;
import io.entresol.jdbc.internal.column.Columns;
import io.entresol.jdbc.internal.column.Keys;
import io.entresol.jdbc.internal.column.Messages;
import io.entresol.jdbc.internal.index.IndexState;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.infinispan.AdvancedCache;
import org.infinispan.CacheStream;
import org.infinispan.commons.api.query.ClosableIteratorWithCount;
import org.infinispan.commons.api.query.EntityEntry;
import org.infinispan.commons.api.query.Query;
import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.commons.util.CloseableIterator;
import org.infinispan.commons.util.IntSets;
import org.infinispan.container.entries.CacheEntry;
import org.infinispan.context.Flag;
import org.infinispan.encoding.DataConversion;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.lifecycle.ComponentStatus;
import org.infinispan.protostream.SerializationContext;
import org.infinispan.protostream.descriptors.Descriptor;
import org.infinispan.query.core.impl.EmbeddedQueryFactory;
import org.infinispan.query.dsl.embedded.impl.QueryEngine;
import org.infinispan.server.core.query.impl.RemoteQueryManager;

/** The rows of a cache's values of one type: read by key, by index or all, and written. */
public final class CacheRows {
    /** Entries that are asked of the cache at once, so that their reads of flash overlap. */
    public static final int BATCH = 1_000;
    /** Rows of fields that all nodes are asked for at once. */
    private static final int FIELDS_PART = 50_000;
    /** Hits of an index that nodes compute totals of before they answer, and a run is cancelled. */
    private static final int HITS_PART = 2_000_000;
    /** Entries that they read for that. */
    private static final int ENTRIES_PART = 500_000;

    private final AdvancedCache<Object, Object> cache;
    private final Question.Table table;
    private final List<Column> columns;
    private final Keys keys;
    private final Messages messages;
    private final NodeIndex index;
    private final Owners owners;
    private final ClusterKeys keysOfAll;
    /** Null where this node has all entries itself. */
    private final Survey survey;
    /** Whether the type of the keys was not known, there being none. */
    private final boolean provisional;
    private final SerializationContext schemas;
    private final Shape shape;

    private CacheRows(AdvancedCache<Object, Object> cache, Question.Table table,
            SerializationContext schemas, CacheRows own, boolean provisional) {
        Descriptor type = schemas.getMessageDescriptor(table.type());
        this.cache = cache;
        this.provisional = provisional;
        this.table = table;
        this.schemas = schemas;
        this.shape = Shape.of(cache, table.type(), schemas);
        this.columns = Columns.of(table.key(), type, shape::indexes);
        this.keys = new Keys(schemas, table.key());
        this.messages = new Messages(schemas, type, columns);
        this.index = new NodeIndex(cache, table.type());
        this.owners = new Owners(cache);
        this.keysOfAll = new ClusterKeys(cache);
        this.survey = own == null ? null : new Survey(cache, owners, own);
    }

    private static CacheRows of(AdvancedCache<Object, Object> cache, Question.Table table,
            SerializationContext schemas, boolean provisional) {
        CacheRows own = new Owners(cache).areMany() ? own(cache, table, schemas) : null;
        return new CacheRows(cache, table, schemas, own, provisional);
    }

    /** Those that this node has itself: other nodes are not asked. */
    static CacheRows own(AdvancedCache<?, ?> cache, Question.Table table,
            SerializationContext schemas) {
        return new CacheRows(stored(cache).withFlags(Flag.CACHE_MODE_LOCAL), table, schemas, null,
                false);
    }

    static CacheRows of(Container container, String name, String type) {
        AdvancedCache<Object, Object> cache = container.cache(name);
        requireProtoStream(name, "keys", cache.getKeyDataConversion());
        requireProtoStream(name, "values", cache.getValueDataConversion());
        SerializationContext schemas = container.schemas();
        if (!schemas.getGenericDescriptors().containsKey(type)) {
            throw new IllegalStateException("cache " + name + " indexes values of type " + type
                    + ", whose schema is not there; register it first");
        }
        ColumnType named = container.keyType(name);
        if (named != null) {
            return of(stored(cache), new Question.Table(name, type, named), schemas, false);
        }
        CacheRows rows = of(stored(cache), new Question.Table(name, type, ColumnType.VARCHAR),
                schemas, true);
        Object some = rows.someKey();
        return some == null ? rows : of(rows.cache, new Question.Table(name, type,
                Keys.typeOf(schemas, Keys.bytes(some))), schemas, false);
    }

    @SuppressWarnings("unchecked")
    private static AdvancedCache<Object, Object> stored(AdvancedCache<?, ?> cache) {
        return (AdvancedCache<Object, Object>) cache.withStorageMediaType();
    }

    private static void requireProtoStream(String cache, String what, DataConversion conversion) {
        MediaType found = conversion.getStorageMediaType();
        if (!found.match(MediaType.APPLICATION_PROTOSTREAM)) {
            throw new IllegalStateException("cache " + cache + ": its " + what + " are kept as "
                    + found + "; SQL expects " + MediaType.APPLICATION_PROTOSTREAM);
        }
    }

    /** A key of the cache, from its index if that is complete; null if there is none. */
    private Object someKey() {
        if (IndexState.of(cache).isComplete()) {
            return keysOf(new Asked("", Map.of(), 0, 1)).stream().findFirst().orElse(null);
        }
        try (CloseableIterator<Object> all = cache.keySet().iterator()) {
            return all.hasNext() ? all.next() : null;
        }
    }

    /** Whether this still is what a statement that is planned now should see. */
    boolean isCurrent() {
        return isUsable() && shape.equals(Shape.of(cache, table.type(), schemas));
    }

    /** Whether it still is what a statement can go on with that was planned with it. */
    public boolean isUsable() {
        return !provisional && cache.getStatus() == ComponentStatus.RUNNING;
    }

    /** Whether the columns of others are the first ones of these. */
    public boolean begin(CacheRows others) {
        return columns.size() >= others.columns.size() && areNamed(others, others.columns.size());
    }

    /** Whether these have the columns that others have. */
    public boolean haveThoseOf(CacheRows others) {
        return columns.size() == others.columns.size() && areNamed(others, columns.size());
    }

    private boolean areNamed(CacheRows others, int most) {
        for (int place = 0; place < most; place++) {
            Column column = columns.get(place);
            Column other = others.columns.get(place);
            boolean same = column.name().equals(other.name())
                    && (column.isKey() || column.type() == other.type());
            if (!same) {
                return false;
            }
        }
        return true;
    }

    public List<Column> columns() {
        return columns;
    }

    public Keys keys() {
        return keys;
    }

    public Messages messages() {
        return messages;
    }

    public AdvancedCache<Object, Object> cache() {
        return cache;
    }

    /** About how many there are. */
    double count() {
        return estimate(new Asked("", Map.of(), 0, Long.MAX_VALUE));
    }

    /** About how many the index finds, as one node alone can tell. */
    double estimate(Asked asked) {
        if (asked.isNever()) {
            return 0;
        } else if (!IndexState.of(cache).isComplete()) {
            return Math.max(1, cache.getAdvancedCache().getDataContainer().size());
        }
        return engine().buildSearchQuery(text("", asked), asked.parameters()).ids()
                .fetchTotalHitCount() / owners.share();
    }

    /** How many entries the index finds. */
    long count(Asked asked) {
        return asked.isNever() ? 0 : owners.ask(() ->
                query("", asked).maxResults(0).execute().count().value());
    }

    /**
     * Whether the index can give these. Where nodes have parts of it, one sorts what all give: by
     * columns that the index keeps, or as Infinispan does, which knows no keys beside fields, and
     * of one field alone leaves out the hits without it.
     */
    boolean canProject(List<Column> wanted, List<CacheQuery.Order> order) {
        boolean kept = wanted.stream().allMatch(CacheRows::isKept);
        return kept && (survey == null || canSort(order) || isKeyAlone(wanted)
                || wanted.stream().noneMatch(Column::isKey)
                        && (wanted.size() > 1 || besides(wanted).findFirst().isPresent()));
    }

    private static boolean isKept(Column column) {
        return column.isKey() || column.can(Column.Index.PROJECT);
    }

    private boolean canSort(List<CacheQuery.Order> order) {
        return order.stream().allMatch(each -> isKept(columns.get(each.column())));
    }

    private static boolean isKeyAlone(List<Column> wanted) {
        return wanted.size() == 1 && wanted.get(0).isKey();
    }

    private Stream<Column> besides(List<Column> wanted) {
        return columns.stream()
                .filter(each -> each.can(Column.Index.PROJECT) && !wanted.contains(each));
    }

    private List<Column> columnsAt(List<Integer> places) {
        return places.stream().map(columns::get).toList();
    }

    /** Cells that the index keeps. */
    Iterable<Object[]> projected(Asked asked, List<Integer> places,
            List<CacheQuery.Order> order) {
        List<Column> wanted = columnsAt(places);
        if (asked.isNever()) {
            return List.of();
        } else if (survey == null) {
            return () -> indexed(asked, places, null);
        } else if (canSort(order)) {
            return () -> order.isEmpty() && asked.isUnlimited()
                    ? survey.rows(question(CacheQuery.Source.INDEX, asked, places, null,
                                    Map.of()),
                            (long) estimate(asked) / FIELDS_PART)
                    : sorted(asked, places, order);
        } else if (isKeyAlone(wanted)) {
            return () -> indexed(keysOf(asked).stream()
                    .map(key -> new Object[] {key}).iterator(), wanted);
        }
        return () -> indexed(fieldsOf(asked, wanted).iterator(), wanted);
    }

    /** What this node's own index keeps of the hits in some segments; null: in all. */
    Steps<Object[]> indexed(Asked asked, List<Integer> places, BitSet segments) {
        List<Column> wanted = columnsAt(places);
        return indexed(index.hits(asked, wanted, segments), wanted);
    }

    private Steps<Object[]> indexed(Iterator<Object[]> hits, List<Column> wanted) {
        return new Steps<>() {
            @Override
            protected Object[] step() {
                return hits.hasNext() ? cells(hits.next(), wanted) : null;
            }

            @Override
            protected void end() {
                if (hits instanceof Steps<?> steps) {
                    steps.close();
                }
            }
        };
    }

    private Object[] cells(Object[] fields, List<Column> wanted) {
        Object[] cells = new Object[fields.length];
        for (int place = 0; place < cells.length; place++) {
            Column column = wanted.get(place);
            cells[place] = column.isKey() ? keys.cell(Keys.bytes(fields[place]))
                    : column.cell(fields[place]);
        }
        return cells;
    }

    private Question question(CacheQuery.Source source, Asked asked, List<Integer> places,
            Totals totals, Map<String, Object> given) {
        return new Question(table, source, asked, places, totals, given, asked.isUnlimited());
    }

    /** The first of what each node has, in an order. */
    private Steps<Object[]> sorted(Asked asked, List<Integer> places,
            List<CacheQuery.Order> order) {
        List<Integer> needed = new ArrayList<>(places);
        order.stream().map(CacheQuery.Order::column).filter(column -> !needed.contains(column))
                .forEach(needed::add);
        Asked first = asked.isUnlimited() ? asked
                : new Asked(asked.ickle(), asked.parameters(), 0, asked.first() + asked.most());
        Question question =
                new Question(table, CacheQuery.Source.INDEX, first, needed, null, Map.of(), false);
        Iterator<Object[]> rows = survey.sorted(question, CacheQuery.Order.of(order, needed))
                .skip(asked.first()).limit(asked.most())
                .map(row -> Arrays.copyOf(row, places.size())).iterator();
        return new Steps<>() {
            @Override
            protected Object[] step() {
                return rows.hasNext() ? rows.next() : null;
            }
        };
    }

    /** Whether totals of what comes from there are for the nodes that have it to compute. */
    public boolean computesTotals(CacheQuery.Source source) {
        return source == CacheQuery.Source.INDEX
                || survey != null && (source == CacheQuery.Source.HITS
                        || source == CacheQuery.Source.ALL);
    }

    /** What is computed of some columns, in rows that may be of the same groups. */
    Iterable<Object[]> totals(CacheQuery.Source source, Asked asked, List<Integer> places,
            Totals totals, Map<String, Object> given) {
        if (asked.isNever()) {
            return List.of();
        }
        Question question = question(source, asked, places, totals, given);
        if (survey != null) {
            int part = source == CacheQuery.Source.INDEX ? HITS_PART : ENTRIES_PART;
            return () -> survey.rows(question, (long) estimate(asked) / part);
        }
        return () -> {
            List<Object[]> rows = new ArrayList<>();
            OwnRows.tell(this, question, null, rows::add);
            return rows.iterator();
        };
    }

    /** Rows that came from other nodes, where they were asked for no more than is wanted. */
    public long carried() {
        return survey == null ? 0 : survey.carried();
    }

    private List<Object[]> fieldsOf(Asked asked, List<Column> wanted) {
        List<Column> fields = new ArrayList<>(wanted);
        boolean padded = fields.size() == 1 && owners.areMany();
        if (padded) {
            fields.add(besides(wanted).findFirst().orElseThrow());
        }
        String select = "select " + String.join(", ",
                fields.stream().map(Column::ickle).toList()) + " ";
        return owners.ask(() -> query(select, asked).list()).stream()
                .map(found -> !(found instanceof Object[] all) ? new Object[] {found}
                        : padded ? new Object[] {all[0]} : all)
                .toList();
    }

    /** Keys of the entries that the index finds, as the cache keeps them. */
    List<Object> keysOf(Asked asked) {
        if (asked.isNever()) {
            return List.of();
        } else if (owners.areMany()) {
            requireIndex();
            return owners.ask(() -> keysOfAll.of(text("", asked), asked.parameters(),
                    asked.first(), asked.most()));
        }
        requireIndex();
        return engine().buildSearchQuery(text("", asked), asked.parameters()).ids()
                .fetch(asked.first(), asked.most()).hits();
    }

    /** The rows that the index finds, and no others, read a batch at a time. */
    Iterable<Object[]> hits(Asked asked) {
        return asked.limit() == Long.MAX_VALUE ? found(asked) : () -> new Limited(asked);
    }

    /**
     * As many rows as are wanted, if there are: entries that ended are gone before the index knows.
     * It is asked for more then, from the first on, because it may learn of them in between.
     */
    private final class Limited extends Steps<Object[]> {
        private final Asked asked;
        private final Set<Object> given = new HashSet<>();
        private Asked wider;
        private Iterator<Object[]> rows;

        Limited(Asked asked) {
            this.asked = asked;
            this.wider = asked;
            this.rows = found(asked).iterator();
        }

        @Override
        protected Object[] step() {
            while (given.size() < asked.limit()) {
                while (rows.hasNext()) {
                    Object[] row = rows.next();
                    if (given.add(row[0])) {
                        return row;
                    }
                }
                if (wider.first() + (long) wider.most() >= count(asked)) {
                    return null;
                }
                wider = wider.withLimit(2 * wider.limit());
                end();
                rows = found(wider).iterator();
            }
            return null;
        }

        @Override
        protected void end() {
            if (rows instanceof Steps<?> steps) {
                steps.close();
            }
        }
    }

    private Iterable<Object[]> found(Asked asked) {
        return !owners.areMany() || asked.isNever() ? of(keysOf(asked)) : () -> {
            var entries = entries(asked);
            return rows(() -> {
                EntityEntry<Object, Object> entry = entries.hasNext() ? entries.next() : null;
                return entry == null ? null : new SimpleImmutableEntry<>(entry.key(), entry.value());
            }, entries::close);
        };
    }

    /** Entries that the indexes of all nodes find, which are read together with their keys. */
    private ClosableIteratorWithCount<EntityEntry<Object, Object>> entries(Asked asked) {
        return owners.ask(() -> query("", asked).entryIterator());
    }

    private Query<Object> query(String select, Asked asked) {
        requireIndex();
        Query<Object> query = new EmbeddedQueryFactory(engine()).create(text(select, asked));
        return query.setParameters(asked.parameters())
                .hitCountAccuracy(Integer.MAX_VALUE)
                .startOffset(asked.offset())
                .maxResults(asked.most());
    }

    private String text(String select, Asked asked) {
        return select + "from " + table.type() + " p" + asked.ickle();
    }

    /** Another one after each start of the cache. */
    private QueryEngine<?> engine() {
        return ComponentRegistry.componentOf(cache, RemoteQueryManager.class)
                .getQueryEngine(cache);
    }

    private void requireIndex() {
        IndexState.of(cache).requireComplete(cache.getName());
    }

    /** The rows of all entries, read in the order in which the store has them. */
    Iterable<Object[]> all() {
        return () -> {
            CloseableIterator<Map.Entry<Object, Object>> entries = cache.entrySet().iterator();
            return rows(() -> entries.hasNext() ? entries.next() : null, entries::close);
        };
    }

    /** The same of some segments. */
    Steps<Object[]> all(BitSet segments) {
        CacheStream<CacheEntry<Object, Object>> entries = cache.cacheEntrySet().stream()
                .filterKeySegments(IntSets.from(segments.stream().iterator()));
        Iterator<CacheEntry<Object, Object>> each = entries.iterator();
        return rows(() -> each.hasNext() ? each.next() : null, entries::close);
    }

    /** The rows that this node's own index finds in some segments. */
    Steps<Object[]> found(Asked asked, BitSet segments) {
        Steps<Object[]> hits = index.hits(asked, columnsAt(List.of(0)), segments);
        return batches(new Steps<>() {
            @Override
            protected Object step() {
                return hits.hasNext() ? hits.next()[0] : null;
            }

            @Override
            protected void end() {
                hits.close();
            }
        });
    }

    /** The rows of entries, the last of which null follows; {@code end} lets go of them. */
    private Steps<Object[]> rows(Supplier<Map.Entry<Object, Object>> entries, Runnable end) {
        return new Steps<>() {
            @Override
            protected Object[] step() {
                for (Map.Entry<Object, Object> entry = entries.get(); entry != null;
                        entry = entries.get()) {
                    Object[] row = entry.getValue() == null ? null
                            : row(entry.getKey(), entry.getValue());
                    if (row != null) {
                        return row;
                    }
                }
                return null;
            }

            @Override
            protected void end() {
                end.run();
            }
        };
    }

    /** The rows of the keys that have any, a batch of entries at a time. */
    Iterable<Object[]> of(List<Object> wanted) {
        return () -> batches(wanted.iterator());
    }

    private Steps<Object[]> batches(Iterator<Object> wanted) {
        return new Steps<>() {
            private Iterator<Object[]> batch = List.<Object[]>of().iterator();

            @Override
            protected Object[] step() {
                while (!batch.hasNext() && wanted.hasNext()) {
                    batch = batch(wanted).iterator();
                }
                return batch.hasNext() ? batch.next() : null;
            }

            @Override
            protected void end() {
                if (wanted instanceof Steps<?> steps) {
                    steps.close();
                }
            }
        };
    }

    private Collection<Object[]> batch(Iterator<Object> rest) {
        Set<Object> asked = new LinkedHashSet<>();
        while (asked.size() < BATCH && rest.hasNext()) {
            asked.add(rest.next());
        }
        Map<Object, Object> found = new LinkedHashMap<>();
        cache.getAll(asked)
                .forEach((key, value) -> found.put(Keys.wrapped(Keys.bytes(key)), value));
        List<Object[]> rows = new ArrayList<>();
        for (Object key : asked) {
            // Removed since the index was asked, perhaps.
            Object value = found.get(Keys.wrapped(Keys.bytes(key)));
            Object[] row = value == null ? null : row(key, value);
            if (row != null) {
                rows.add(row);
            }
        }
        return rows;
    }

    private Object[] row(Object key, Object value) {
        Object[] cells = messages.cells(Keys.bytes(value));
        if (cells != null) {
            cells[0] = keys.cell(Keys.bytes(key));
        }
        return cells;
    }
}
