package io.entresol.jdbc;

import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.infinispan.AdvancedCache;
import org.infinispan.commons.api.query.ClosableIteratorWithCount;
import org.infinispan.commons.api.query.EntityEntry;
import org.infinispan.commons.api.query.Query;
import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.commons.util.CloseableIterator;
import org.infinispan.encoding.DataConversion;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.lifecycle.ComponentStatus;
import org.infinispan.protostream.SerializationContext;
import org.infinispan.protostream.descriptors.Descriptor;
import org.infinispan.query.core.impl.EmbeddedQueryFactory;
import org.infinispan.query.dsl.embedded.impl.QueryEngine;
import org.infinispan.server.core.query.impl.RemoteQueryManager;

/** The rows of a cache's values of one type: read by key, by index or all, and written. */
final class CacheRows {
    /** Entries that are asked of the cache at once, so that their reads of flash overlap. */
    static final int BATCH = 1_000;

    private final AdvancedCache<Object, Object> cache;
    private final String type;
    private final List<Column> columns;
    private final Keys keys;
    private final Messages messages;
    private final Owners owners;
    private final ClusterKeys keysOfAll;
    /** Whether the type of the keys was not known, there being none. */
    private final boolean provisional;

    private CacheRows(AdvancedCache<Object, Object> cache, Descriptor type, ColumnType key,
            SerializationContext schemas, boolean provisional) {
        this.cache = cache;
        this.provisional = provisional;
        this.type = type.getFullName();
        this.columns = Columns.of(key, type);
        this.keys = new Keys(schemas, key);
        this.messages = new Messages(schemas, type, columns);
        this.owners = new Owners(cache);
        this.keysOfAll = new ClusterKeys(cache);
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
        Descriptor descriptor = schemas.getMessageDescriptor(type);
        ColumnType named = container.keyType(name);
        if (named != null) {
            return new CacheRows(stored(cache), descriptor, named, schemas, false);
        }
        CacheRows rows =
                new CacheRows(stored(cache), descriptor, ColumnType.VARCHAR, schemas, true);
        Object some = rows.someKey();
        return some == null ? rows : new CacheRows(rows.cache, descriptor,
                Keys.typeOf(schemas, Keys.bytes(some)), schemas, false);
    }

    @SuppressWarnings("unchecked")
    private static AdvancedCache<Object, Object> stored(AdvancedCache<Object, Object> cache) {
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

    /** Whether this still is what a statement should see. */
    boolean isCurrent() {
        return !provisional && cache.getStatus() == ComponentStatus.RUNNING;
    }

    List<Column> columns() {
        return columns;
    }

    Keys keys() {
        return keys;
    }

    Messages messages() {
        return messages;
    }

    AdvancedCache<Object, Object> cache() {
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

    /**
     * What is asked of the index.
     *
     * @param ickle all after the name of the type
     * @param parameters values by their names
     * @param offset rows to leave out
     * @param limit most rows
     */
    record Asked(String ickle, Map<String, Object> parameters, long offset, long limit) {
        static final Asked NOTHING = new Asked("", Map.of(), 0, 0);

        boolean isNever() {
            return limit == 0;
        }

        Asked withLimit(long rows) {
            return new Asked(ickle, parameters, offset, rows);
        }

        int first() {
            return (int) Math.min(offset, Integer.MAX_VALUE);
        }

        int most() {
            return (int) Math.min(limit, Integer.MAX_VALUE - first());
        }
    }

    /** How many entries the index finds. */
    long count(Asked asked) {
        return asked.isNever() ? 0 : owners.ask(() ->
                query("", asked).maxResults(0).execute().count().value());
    }

    /**
     * Whether the index can give these. Ickle has no word for the key of such values, so that keys
     * come alone; and of one field alone a cluster leaves out the hits without it.
     */
    boolean canProject(List<Column> wanted) {
        return isKeyAlone(wanted)
                || wanted.stream().allMatch(each -> each.can(Column.Index.PROJECT))
                && (wanted.size() > 1 || !owners.areMany()
                        || besides(wanted).findFirst().isPresent());
    }

    private static boolean isKeyAlone(List<Column> wanted) {
        return wanted.size() == 1 && wanted.get(0).isKey();
    }

    private Stream<Column> besides(List<Column> wanted) {
        return columns.stream()
                .filter(each -> each.can(Column.Index.PROJECT) && !wanted.contains(each));
    }

    /** Cells that the index keeps. */
    Iterable<Object[]> projected(Asked asked, List<Column> wanted) {
        if (isKeyAlone(wanted)) {
            return cells(keysOf(asked).stream().map(key -> new Object[] {key}).toList(), wanted);
        } else if (asked.isNever()) {
            return List.of();
        }
        return cells(fieldsOf(asked, wanted), wanted);
    }

    private Iterable<Object[]> cells(List<Object[]> found, List<Column> wanted) {
        return () -> found.stream().map(fields -> {
            Object[] cells = new Object[fields.length];
            for (int place = 0; place < cells.length; place++) {
                Column column = wanted.get(place);
                cells[place] = column.isKey() ? keys.cell(Keys.bytes(fields[place]))
                        : column.cell(fields[place]);
            }
            return cells;
        }).iterator();
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
        Object[] step() {
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
        void end() {
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
        return select + "from " + type + " p" + asked.ickle();
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

    /** The rows of entries, the last of which null follows; {@code end} lets go of them. */
    private Steps<Object[]> rows(Supplier<Map.Entry<Object, Object>> entries, Runnable end) {
        return new Steps<>() {
            @Override
            Object[] step() {
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
            void end() {
                end.run();
            }
        };
    }

    /** The rows of the keys that have any, a batch of entries at a time. */
    Iterable<Object[]> of(List<Object> wanted) {
        return () -> {
            Iterator<Object> rest = wanted.iterator();
            return new Steps<>() {
                private Iterator<Object[]> batch = List.<Object[]>of().iterator();

                @Override
                Object[] step() {
                    while (!batch.hasNext() && rest.hasNext()) {
                        batch = batch(rest).iterator();
                    }
                    return batch.hasNext() ? batch.next() : null;
                }
            };
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

    /** An iterator by one method, which gives null at the end. Closed, it is at its end. */
    abstract static class Steps<T> implements Iterator<T>, AutoCloseable {
        private T ahead;
        private boolean ended;

        abstract T step();

        /** Called once, at the end or when nobody wants the rest. */
        void end() {
            // Most have nothing to let go of.
        }

        @Override
        public boolean hasNext() {
            if (ahead == null && !ended) {
                ahead = step();
                if (ahead == null) {
                    close();
                }
            }
            return ahead != null;
        }

        @Override
        public void close() {
            ahead = null;
            if (!ended) {
                ended = true;
                end();
            }
        }

        @Override
        public T next() {
            if (!hasNext()) {
                throw new NoSuchElementException("there are no more rows");
            }
            T given = ahead;
            ahead = null;
            return given;
        }
    }
}
