package io.entresol.jdbc.internal.rows;

import io.entresol.jdbc.internal.aggregate.Formulas;
import io.entresol.jdbc.internal.aggregate.Totals;
import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.column.ColumnType;
import io.entresol.jdbc.internal.column.Keys;
import io.entresol.jdbc.internal.dialect.Texts;
import io.entresol.jdbc.internal.run.Cancellation;
import io.entresol.jdbc.internal.run.Wanted;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.StringJoiner;
import java.util.function.Function;
import org.apache.calcite.DataContext;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.Linq4j;
import org.infinispan.commons.marshall.WrappedByteArray;

/**
 * The request of a statement to one cache.
 *
 * @param columns places of the required columns
 * @param keys keys to read; null: not by key
 * @param where conditions for the index, all of which must hold
 * @param order columns to sort by
 * @param offset rows to leave out; null: none
 * @param limit most rows; null: all
 * @param counted whether only the number of rows is needed
 * @param totals totals to compute of the columns, in place of these; null: none
 * @param lookup column whose required cells a join gives; null: none
 */
public record CacheQuery(List<Integer> columns, List<Condition.Operand> keys, List<Condition> where,
        List<Order> order, Condition.Operand offset, Condition.Operand limit, boolean counted,
        Totals totals, Integer lookup) {
    /** What plans call the cells that a join gives. */
    public static final String WANTED = "those of the join";

    /** Where the rows come from. */
    public enum Source {
        /** The number of hits of the index. */
        COUNT("index, counted"),
        /** Fields that the index keeps: no entry is read. */
        INDEX("index"),
        /** The entries that the index finds, and no others. */
        HITS("entries by index"),
        /** The entries of given keys. */
        KEYS("entries by key"),
        /** All entries, in the order of the store. */
        ALL("all entries");

        private final String shown;

        Source(String shown) {
            this.shown = shown;
        }

        @Override
        public String toString() {
            return shown;
        }
    }

    /** A column to sort by. */
    public record Order(int column, boolean descending) {
        /** How an index sorts rows of the columns at some places: what lacks a field is last. */
        static Comparator<Object[]> of(List<Order> order, List<Integer> places) {
            Comparator<Object[]> all = (one, other) -> 0;
            for (Order each : order) {
                int place = places.indexOf(each.column);
                Comparator<Object> cells = each.descending ? Collections.reverseOrder(Order::compare)
                        : Order::compare;
                all = all.thenComparing(row -> row[place], Comparator.nullsLast(cells));
            }
            return all;
        }

        @SuppressWarnings("unchecked")
        private static int compare(Object one, Object other) {
            return one instanceof String text ? Texts.ORDER.compare(text, (String) other)
                    : ((Comparable<Object>) one).compareTo(other);
        }
    }

    public static CacheQuery all(int columns) {
        List<Integer> places = new ArrayList<>();
        for (int place = 0; place < columns; place++) {
            places.add(place);
        }
        return new CacheQuery(places, null, List.of(), List.of(), null, null, false, null, null);
    }

    public Source source(CacheRows rows) {
        if (counted) {
            return Source.COUNT;
        } else if (keys != null || looksUpKeys(rows.columns())) {
            return Source.KEYS;
        } else if (rows.canProject(wanted(rows), order)) {
            return Source.INDEX;
        }
        return where.isEmpty() && order.isEmpty() && !isLimited() && lookup == null
                ? Source.ALL : Source.HITS;
    }

    public boolean looksUpKeys(List<Column> table) {
        return lookup != null && table.get(lookup).isKey();
    }

    /** Whether neither keys nor an order or limit say which rows these are. */
    public boolean isPlain() {
        return keys == null && order.isEmpty() && !isLimited() && !isReduced() && lookup == null;
    }

    /** Whether something that is computed of the rows is wanted, and not the rows. */
    public boolean isReduced() {
        return counted || totals != null;
    }

    private List<Column> wanted(CacheRows rows) {
        return columns.stream().map(rows.columns()::get).toList();
    }

    public CacheQuery withColumns(List<Integer> chosen) {
        return new CacheQuery(chosen, keys, where, order, offset, limit, counted, totals, lookup);
    }

    public CacheQuery withKeys(List<Condition.Operand> wanted) {
        return new CacheQuery(columns, wanted, where, order, offset, limit, counted, totals, lookup);
    }

    public CacheQuery withWhere(List<Condition> more) {
        List<Condition> both = new ArrayList<>(where);
        both.addAll(more);
        return new CacheQuery(columns, keys, both, order, offset, limit, counted, totals, lookup);
    }

    public CacheQuery withOrder(List<Order> sorted, Condition.Operand from,
            Condition.Operand most) {
        return new CacheQuery(columns, keys, where, sorted, from, most, counted, totals, lookup);
    }

    public CacheQuery withCount() {
        return new CacheQuery(columns, keys, where, order, offset, limit, true, totals, lookup);
    }

    public CacheQuery withTotals(Totals wanted) {
        return new CacheQuery(columns, keys, where, order, offset, limit, counted, wanted, lookup);
    }

    public CacheQuery withLookup(Integer column) {
        return new CacheQuery(columns, keys, where, order, offset, limit, counted, totals, column);
    }

    public boolean isLimited() {
        return offset != null || limit != null;
    }

    /** The query of the cells that a join wants. */
    public CacheQuery narrowed(List<Column> table, Wanted wanted) {
        CacheQuery plain = withLookup(null);
        if (wanted.areAll()) {
            return plain;
        }
        Column column = table.get(lookup);
        List<Condition.Operand> cells = wanted.cells().stream().map(column::comparedOrNull)
                .filter(Objects::nonNull).flatMap(column::equalFields).map(Condition::constant)
                .toList();
        return column.isKey() ? plain.withKeys(cells)
                : plain.withWhere(List.of(Condition.among(column, cells)));
    }

    /** About how many rows there are, as far as this node's index knows. */
    public double estimate(CacheRows rows) {
        return rows.estimate(asked(rows, null));
    }

    /** About how many entries, or rows of the index, are read. */
    public long size(CacheRows rows, DataContext run) {
        return switch (source(rows)) {
            case COUNT -> 1;
            case KEYS -> keys.size();
            case ALL -> (long) rows.count();
            case INDEX, HITS -> rows.count(asked(rows, run));
        };
    }

    /** The part of the query in Ickle after the type's name, with its operands for people. */
    public String shown(List<Column> table) {
        List<String> conditions = new ArrayList<>(where.stream().map(Condition::shown).toList());
        if (lookup != null && !looksUpKeys(table)) {
            conditions.add(table.get(lookup).ickle() + " in (" + WANTED + ")");
        }
        return ickle(table, conditions)
                + (offset == null ? "" : " offset " + offset.shown())
                + (limit == null ? "" : " limit " + limit.shown());
    }

    private String ickle(List<Column> table, List<String> conditions) {
        StringJoiner sorted = new StringJoiner(", ", " order by ", "").setEmptyValue("");
        for (Order each : order) {
            sorted.add(table.get(each.column()).ickle() + (each.descending() ? " desc" : " asc"));
        }
        return (conditions.isEmpty() ? "" : " where " + String.join(" and ", conditions)) + sorted;
    }

    /** The rows of one run. */
    public Enumerable<Object> read(CacheRows rows, DataContext run) {
        if (totals != null) {
            Map<String, Object> given =
                    totals.formulas().given(run, Formulas.row(wanted(rows)));
            return single(rows.totals(source(rows), asked(rows, run), columns, totals, given),
                    run);
        }
        return switch (source(rows)) {
            case COUNT -> Linq4j.singletonEnumerable(rows.count(asked(rows, run)));
            case INDEX -> single(rows.projected(asked(rows, run), columns, order), run);
            case HITS -> chosen(rows.hits(asked(rows, run)), run);
            case KEYS -> chosen(rows.of(keys(rows, run)), run);
            case ALL -> chosen(rows.all(), run);
        };
    }

    private List<Object> keys(CacheRows rows, DataContext run) {
        Set<WrappedByteArray> wanted = new LinkedHashSet<>();
        for (Condition.Operand key : keys) {
            Object cell = key.value(run);
            // Nothing equals null.
            if (cell != null) {
                wanted.add(Keys.wrapped(rows.keys().stored(cell)));
            }
        }
        return List.copyOf(wanted);
    }

    /** A row of one column is its cell. */
    private static Enumerable<Object> single(Iterable<Object[]> rows, DataContext run) {
        return mapped(rows, run, cells -> cells.length == 1 ? cells[0] : cells);
    }

    private Enumerable<Object> chosen(Iterable<Object[]> rows, DataContext run) {
        return mapped(rows, run, row -> {
            Object[] cells = chosen(row, columns);
            return cells.length == 1 ? cells[0] : cells;
        });
    }

    /** The cells of some columns of a row. */
    static Object[] chosen(Object[] row, List<Integer> columns) {
        Object[] cells = new Object[columns.size()];
        for (int place = 0; place < cells.length; place++) {
            cells[place] = row[columns.get(place)];
        }
        return cells;
    }

    private static Enumerable<Object> mapped(Iterable<Object[]> rows, DataContext run,
            Function<Object[], Object> change) {
        Cancellation cancellation = Cancellation.of(run);
        Iterable<Object> all = () -> mapped(rows.iterator(), change, cancellation);
        return Linq4j.asEnumerable(all);
    }

    static <T> Iterator<Object> mapped(Iterator<T> from, Function<T, Object> change,
            Cancellation cancellation) {
        return new Mapped<>(from, change, cancellation);
    }

    /** Closed by Calcite when a statement ends, also where nobody wanted the rest. */
    private record Mapped<T>(Iterator<T> from, Function<T, Object> change,
            Cancellation cancellation) implements Iterator<Object>, AutoCloseable {
        @Override
        public boolean hasNext() {
            cancellation.check();
            return from.hasNext();
        }

        @Override
        public Object next() {
            return change.apply(from.next());
        }

        @Override
        public void close() {
            if (from instanceof Steps<?> steps) {
                steps.close();
            }
        }
    }

    private Asked asked(CacheRows rows, DataContext run) {
        Map<String, Object> parameters = new HashMap<>();
        List<String> conditions = new ArrayList<>();
        for (Condition condition : where) {
            Condition valued = condition.in(run).orElse(null);
            if (valued == null) {
                return Asked.NOTHING;
            }
            conditions.add(valued.text(operand -> {
                String name = "v" + parameters.size();
                parameters.put(name, operand.value(run));
                return ":" + name;
            }));
        }
        return new Asked(ickle(rows.columns(), conditions), parameters,
                offset == null ? 0 : whole(offset, run),
                limit == null ? Long.MAX_VALUE : whole(limit, run));
    }

    private static long whole(Condition.Operand operand, DataContext run) {
        Object value = operand.value(run);
        Long rows = value == null ? null : (Long) ColumnType.BIGINT.field(null, value, "a limit");
        if (rows == null || rows < 0) {
            throw new IllegalArgumentException("a limit or an offset: expected a number of rows, "
                    + "found " + value);
        }
        return rows;
    }
}
