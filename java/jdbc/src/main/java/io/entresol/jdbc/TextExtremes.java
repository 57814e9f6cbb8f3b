package io.entresol.jdbc;

import java.util.List;
import org.apache.calcite.adapter.enumerable.AggAddContext;
import org.apache.calcite.adapter.enumerable.AggContext;
import org.apache.calcite.adapter.enumerable.AggImplementor;
import org.apache.calcite.adapter.enumerable.AggResetContext;
import org.apache.calcite.adapter.enumerable.StrictAggImplementor;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.schema.FunctionParameter;
import org.apache.calcite.schema.ImplementableAggFunction;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.sql.SqlKind;

/** The least and the greatest of texts, in the order of {@link Texts}. */
final class TextExtremes {
    private TextExtremes() {}

    static boolean isOne(SqlAggFunction function, RelDataType type) {
        return (function.getKind() == SqlKind.MIN || function.getKind() == SqlKind.MAX)
                && Exchange.isText(type);
    }

    static SqlAggFunction of(SqlAggFunction function, RelDataType type) {
        return CheckedSums.computed(function, type,
                new Extreme(type, function.getKind() == SqlKind.MAX ? "greatest" : "least"));
    }

    /** What Calcite asks of a function that is not its own. */
    private record Extreme(RelDataType type, String method) implements ImplementableAggFunction {
        @Override
        public RelDataType getReturnType(RelDataTypeFactory factory) {
            return type;
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
                    reset.currentBlock().add(Expressions.statement(Expressions.assign(
                            reset.accumulator().get(0), Expressions.constant(null))));
                }

                @Override
                protected void implementNotNullAdd(AggContext info, AggAddContext add) {
                    Expression found = add.accumulator().get(0);
                    accAdvance(add, found, Expressions.call(Texts.class, method, found,
                            add.arguments().get(0)));
                }
            };
        }
    }
}
