package io.entresol.jdbc;

import java.util.List;
import org.apache.calcite.adapter.enumerable.AggAddContext;
import org.apache.calcite.adapter.enumerable.AggContext;
import org.apache.calcite.adapter.enumerable.AggImplementor;
import org.apache.calcite.adapter.enumerable.AggResetContext;
import org.apache.calcite.adapter.enumerable.EnumUtils;
import org.apache.calcite.adapter.enumerable.StrictAggImplementor;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.linq4j.tree.Primitive;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.schema.FunctionParameter;
import org.apache.calcite.schema.ImplementableAggFunction;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * The least and the greatest of floating-point numbers, in the order in which rows are sorted by
 * them: what is no number comes after the infinities. Calcite's own leave out the infinities, and
 * give or leave out what is no number as the rows come. For the code that Calcite makes, not for
 * other uses.
 */
public final class FloatExtremes {
    private FloatExtremes() {}

    static boolean isOne(SqlAggFunction function, RelDataType type) {
        SqlTypeName name = type.getSqlTypeName();
        return (function.getKind() == SqlKind.MIN || function.getKind() == SqlKind.MAX)
                && (name == SqlTypeName.DOUBLE || name == SqlTypeName.FLOAT
                        || name == SqlTypeName.REAL);
    }

    static SqlAggFunction of(SqlAggFunction function, RelDataType type) {
        return CheckedSums.computed(function, type,
                new Extreme(type.getSqlTypeName(), function.getKind() == SqlKind.MAX));
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

    /** What Calcite asks of a function that is not its own. */
    private record Extreme(SqlTypeName type, boolean greatest) implements ImplementableAggFunction {
        @Override
        public RelDataType getReturnType(RelDataTypeFactory factory) {
            return factory.createSqlType(type);
        }

        @Override
        public List<FunctionParameter> getParameters() {
            return List.of();
        }

        @Override
        public AggImplementor getImplementor(boolean window) {
            return new StrictAggImplementor() {
                @Override
                protected void implementNotNullReset(AggContext info, AggResetContext reset) {
                    Expression found = reset.accumulator().get(0);
                    // No number comes before the one, none after the other.
                    reset.currentBlock().add(Expressions.statement(Expressions.assign(found,
                            Expressions.field(null, Primitive.box(found.getType()) == Float.class
                                    ? Float.class : Double.class,
                                    greatest ? "NEGATIVE_INFINITY" : "NaN"))));
                }

                @Override
                protected void implementNotNullAdd(AggContext info, AggAddContext add) {
                    Expression found = add.accumulator().get(0);
                    Expression number =
                            EnumUtils.convert(add.arguments().get(0), found.getType());
                    accAdvance(add, found, Expressions.call(FloatExtremes.class,
                            greatest ? "greatest" : "least", found, number));
                }
            };
        }
    }
}
