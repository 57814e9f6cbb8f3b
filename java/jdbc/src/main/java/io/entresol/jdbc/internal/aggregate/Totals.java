package io.entresol.jdbc.internal.aggregate;

import io.entresol.jdbc.internal.dialect.Texts;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * The result of an aggregate for some of the rows, which combines with others to the result for
 * all: sums are added, minima and maxima compared. It computes as the code that Calcite generates.
 *
 * @param groups places of the cells that rows of a group share
 * @param calls aggregates to compute for each group
 * @param formulas expressions to compute from the columns first: their cells follow those of the
 *     columns
 */
public record Totals(List<Integer> groups, List<Call> calls, Formulas formulas) {
    /** What is computed. */
    public enum Kind {
        /** Rows, or those where a column has a value. */
        COUNT,
        /** Null where no row has a value. */
        SUM,
        /** Zero where no row has a value. */
        SUM_OR_ZERO,
        LEAST,
        GREATEST
    }

    /**
     * One thing that is computed.
     *
     * @param kind what
     * @param place of the cell that it is computed from; negative: of none
     * @param filter place of a cell that is true where a row counts; negative: all do
     * @param type what sums are
     */
    public record Call(Kind kind, int place, int filter, SqlTypeName type) {
        /** Added to any number, that number. */
        private static final Number NOTHING = -0.0;

        private Object first() {
            return switch (kind) {
                case COUNT -> 0L;
                case SUM_OR_ZERO -> sum(0, 0, null);
                default -> null;
            };
        }

        private Object with(Object so, Object[] cells, IntFunction<String> names) {
            Object cell = place < 0 ? cells : cells[place];
            if (cell == null || filter >= 0 && !Boolean.TRUE.equals(cells[filter])) {
                return so;
            } else if (kind == Kind.COUNT) {
                return (Long) so + 1;
            } else if (so == null) {
                return kind == Kind.SUM ? sum(NOTHING, (Number) cell, names) : cell;
            }
            return switch (kind) {
                case LEAST -> compare(cell, so) < 0 ? cell : so;
                case GREATEST -> compare(cell, so) > 0 ? cell : so;
                default -> sum((Number) so, (Number) cell, names);
            };
        }

        private Object sum(Number one, Number other, IntFunction<String> names) {
            return switch (type) {
                case INTEGER -> one.intValue() + other.intValue();
                case BIGINT -> added(one.longValue(), other.longValue(), names);
                case REAL -> one.floatValue() + other.floatValue();
                case DOUBLE -> one.doubleValue() + other.doubleValue();
                case DECIMAL -> decimal(one).add(decimal(other));
                default -> throw new IllegalArgumentException("no sums are of type " + type);
            };
        }

        /** What is added first has no digits behind the point, which a sum would keep. */
        private static BigDecimal decimal(Number number) {
            return number instanceof BigDecimal exact ? exact : BigDecimal.ZERO;
        }

        /** The name is wanted once at most, and not of each row. */
        private long added(long one, long other, IntFunction<String> names) {
            long sum = one + other;
            return ((one ^ sum) & (other ^ sum)) < 0
                    ? CheckedSums.add(one, other, names.apply(place)) : sum;
        }

        @SuppressWarnings("unchecked")
        private static int compare(Object one, Object other) {
            return one instanceof String text ? Texts.ORDER.compare(text, (String) other)
                    : ((Comparable<Object>) one).compareTo(other);
        }

        private String shown(List<String> columns) {
            String name = switch (kind) {
                case COUNT -> "count";
                case SUM, SUM_OR_ZERO -> "sum";
                case LEAST -> "min";
                case GREATEST -> "max";
            };
            return name + "(" + (place < 0 ? "*" : columns.get(place)) + ")"
                    + (filter < 0 ? "" : " filter " + columns.get(filter));
        }
    }

    /** For people, in plans, by the names of the cells; what differs reads differently. */
    public List<String> shown(List<String> columns) {
        List<String> shown = new ArrayList<>();
        groups.forEach(place -> shown.add(columns.get(place)));
        calls.forEach(call -> shown.add(call.shown(columns)));
        return shown;
    }

    /** What is known of the rows so far. */
    public final class Table {
        private final Map<List<Object>, Object[]> known = new LinkedHashMap<>();
        private final IntFunction<String> names;

        /** Of cells that people know by those names. */
        public Table(IntFunction<String> names) {
            this.names = names;
        }

        public void add(Object[] cells) {
            Object[] group = new Object[groups.size()];
            for (int number = 0; number < group.length; number++) {
                group[number] = cells[groups.get(number)];
            }
            Object[] totals = known.computeIfAbsent(Arrays.asList(group),
                    any -> calls.stream().map(Call::first).toArray());
            for (int number = 0; number < totals.length; number++) {
                totals[number] = calls.get(number).with(totals[number], cells, names);
            }
        }

        public int size() {
            return known.size();
        }

        /** A row for each group that has any rows: its cells, then what was computed. */
        public List<Object[]> rows() {
            List<Object[]> rows = new ArrayList<>();
            known.forEach((group, totals) -> {
                Object[] row = Arrays.copyOf(group.toArray(), group.size() + totals.length);
                System.arraycopy(totals, 0, row, group.size(), totals.length);
                rows.add(row);
            });
            return rows;
        }
    }
}
