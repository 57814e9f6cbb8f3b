package io.entresol.jdbc;

import java.util.List;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.rel.RelNode;
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
    static final String EXPRESSION = "an expression";

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

    /** What adds a column of an input instead of a function; null: the function does not add. */
    static SqlAggFunction of(SqlAggFunction function, RelDataType type, RelNode input, int place) {
        if (!isSum(function, type)) {
            return null;
        }
        // Constants of a window come after the columns of its input.
        boolean known = place >= 0 && place < input.getRowType().getFieldCount();
        String column = known ? column(input, place) : EXPRESSION;
        return new Accumulator(type, Expressions.constant(0L), CheckedSums.class, "add",
                List.of(Expressions.constant(column))).insteadOf(function);
    }

    private static boolean isSum(SqlAggFunction function, RelDataType type) {
        SqlKind kind = function.getKind();
        return (kind == SqlKind.SUM || kind == SqlKind.SUM0)
                && type.getSqlTypeName() == SqlTypeName.BIGINT;
    }

    /** As people know it. */
    private static String column(RelNode input, int place) {
        if (input instanceof CacheScan scan && scan.query().totals() != null) {
            int call = place - scan.query().totals().groups().size();
            int of = scan.query().totals().calls().get(call).place();
            if (of >= scan.query().columns().size()) {
                return EXPRESSION;
            }
            return of < 0 ? "rows" : '"' + scan.column(of).name() + '"';
        }
        String name = input.getRowType().getFieldNames().get(place);
        return name.contains("$") ? EXPRESSION : '"' + name + '"';
    }
}
