package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.rows.Condition;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.apache.calcite.DataContext;
import org.apache.calcite.sql.SqlKind;

/**
 * Comparisons of a column with a value. An index compares floating-point numbers by their bits: it
 * tells both zeros apart, and NaN equals itself. It leaves the infinities out of ranges, and fails
 * on bounds beyond the ends of whole numbers. In SQL both zeros are equal, and NaN differs from
 * everything, itself too, and is neither less nor greater.
 */
final class Comparison {
    private Comparison() {}

    static Condition of(Column column, SqlKind kind, Condition.Operand value) {
        return switch (column.type()) {
            case DOUBLE, REAL -> approximate(column, kind, value);
            case INTEGER -> whole(column, kind, value, Integer.MIN_VALUE, Integer.MAX_VALUE);
            case BIGINT, TIMESTAMP ->
                    whole(column, kind, value, Long.MIN_VALUE, Long.MAX_VALUE);
            default -> exact(column, kind, value);
        };
    }

    private static Condition exact(Column column, SqlKind kind, Condition.Operand value) {
        return compared(column, kind == SqlKind.NOT_EQUALS
                ? "(%1$s != %%s and %1$s is not null)" : "%1$s " + kind.sql + " %%s", value);
    }

    private static Condition whole(Column column, SqlKind kind, Condition.Operand value,
            Object least, Object most) {
        return exact(column, kind, switch (kind) {
            case LESS_THAN -> new Bound(value, but(Set.of(least)));
            case GREATER_THAN -> new Bound(value, but(Set.of(most)));
            default -> value;
        });
    }

    private static Condition approximate(Column column, SqlKind kind, Condition.Operand value) {
        Object least = column.compared(Double.NEGATIVE_INFINITY);
        Object most = column.compared(Double.POSITIVE_INFINITY);
        Object none = column.compared(Double.NaN);
        Condition.Operand first = new Bound(value, zero(column, -0.0));
        Condition.Operand last = new Bound(value, zero(column, 0.0));
        UnaryOperator<Object> number = but(Set.of(none));
        return switch (kind) {
            case EQUALS -> compared(column, "(%1$s = %%s or %1$s = %%s)",
                    new Bound(first, number), new Bound(last, number));
            case NOT_EQUALS -> compared(column,
                    "(((%1$s != %%s and %1$s != %%s) or %1$s = %%s) and %1$s is not null)",
                    first, last, Condition.constant(none));
            case LESS_THAN -> compared(column, "(%1$s < %%s or %1$s = %%s)",
                    new Bound(first, but(Set.of(none, least))), Condition.constant(least));
            case LESS_THAN_OR_EQUAL -> compared(column, "(%1$s <= %%s or %1$s = %%s)",
                    new Bound(last, number), Condition.constant(least));
            case GREATER_THAN -> compared(column, "(%1$s > %%s or %1$s = %%s)",
                    new Bound(last, but(Set.of(none, most))), Condition.constant(most));
            default -> compared(column, "(%1$s >= %%s or %1$s = %%s)",
                    new Bound(first, number), Condition.constant(most));
        };
    }

    /** One of the two zeros for both. */
    private static UnaryOperator<Object> zero(Column column, double zero) {
        return value -> ((Number) value).doubleValue() == 0 ? column.compared(zero) : value;
    }

    /** Values but those with which the comparison never holds. */
    private static UnaryOperator<Object> but(Set<Object> never) {
        return value -> never.contains(value) ? null : value;
    }

    private static Condition compared(Column column, String pattern,
            Condition.Operand... operands) {
        return new Condition.Plain(String.format(pattern, column.ickle()), List.of(operands),
                Set.of(column));
    }

    /** A value as the index is asked for it. */
    private record Bound(Condition.Operand value, UnaryOperator<Object> change)
            implements Condition.Operand {
        @Override
        public Object value(DataContext run) {
            Object given = value.value(run);
            return given == null ? null : change.apply(given);
        }

        @Override
        public boolean isConstant() {
            return value.isConstant();
        }

        @Override
        public String shown() {
            return isConstant() ? String.valueOf(value(null)) : value.shown();
        }
    }
}
