package io.entresol.jdbc.internal.aggregate;

import java.util.List;
import java.util.function.Supplier;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * Sums of BIGINT for which leaving the type is an error, as in other arithmetic; Calcite's own sums
 * wrap around. For the code that Calcite generates, not for other uses.
 */
public final class CheckedSums {
    /** What people are told of instead of a column. */
    public static final String EXPRESSION = "an expression";

    private CheckedSums() {}

    /** The sum so far and one number more, of a column, if a BIGINT can be that. */
    public static long add(long one, long other, String column) {
        long sum = one + other;
        if (((one ^ sum) & (other ^ sum)) < 0) {
            throw new ArithmeticException("overflow: a sum of " + column + " is beyond BIGINT; sum"
                    + " it as sum(cast(" + column + " as decimal(19)))");
        }
        return sum;
    }

    /**
     * What adds a column instead of a function; null: the function does not add. {@code column} is
     * the column as people know it.
     */
    public static SqlAggFunction of(SqlAggFunction function, RelDataType type,
            Supplier<String> column) {
        return !isSum(function, type) ? null : new Accumulator(type, Expressions.constant(0L),
                CheckedSums.class, "add",
                List.of(Expressions.constant(column.get()))).insteadOf(function);
    }

    private static boolean isSum(SqlAggFunction function, RelDataType type) {
        SqlKind kind = function.getKind();
        return (kind == SqlKind.SUM || kind == SqlKind.SUM0)
                && type.getSqlTypeName() == SqlTypeName.BIGINT;
    }
}
