package io.entresol.jdbc.internal.aggregate;

import java.util.List;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * The least and the greatest of floating-point numbers, in the order in which rows are sorted by
 * them: NaN comes after the infinities. Calcite's own functions leave out the infinities, and treat
 * NaN by the order of the rows. For the code that Calcite generates, not for other uses.
 */
public final class FloatExtremes {
    private FloatExtremes() {}

    public static boolean isOne(SqlAggFunction function, RelDataType type) {
        SqlTypeName name = type.getSqlTypeName();
        return (function.getKind() == SqlKind.MIN || function.getKind() == SqlKind.MAX)
                && (name == SqlTypeName.DOUBLE || name == SqlTypeName.FLOAT
                        || name == SqlTypeName.REAL);
    }

    public static SqlAggFunction of(SqlAggFunction function, RelDataType type) {
        boolean greatest = function.getKind() == SqlKind.MAX;
        // No number comes before the one, none after the other.
        Expression first = Expressions.field(null,
                type.getSqlTypeName() == SqlTypeName.REAL ? Float.class : Double.class,
                greatest ? "NEGATIVE_INFINITY" : "NaN");
        return new Accumulator(type, first, FloatExtremes.class, greatest ? "greatest" : "least",
                List.of()).insteadOf(function);
    }

    /** The one that comes first. */
    public static double least(double one, double other) {
        return Double.compare(one, other) <= 0 ? one : other;
    }

    /** The one that comes first. */
    public static float least(float one, float other) {
        return Float.compare(one, other) <= 0 ? one : other;
    }

    /** The one that comes last. */
    public static double greatest(double one, double other) {
        return Double.compare(one, other) >= 0 ? one : other;
    }

    /** The one that comes last. */
    public static float greatest(float one, float other) {
        return Float.compare(one, other) >= 0 ? one : other;
    }
}
