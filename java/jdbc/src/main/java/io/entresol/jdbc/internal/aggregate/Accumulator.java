package io.entresol.jdbc.internal.aggregate;

import java.util.List;
import java.util.stream.Stream;
import org.apache.calcite.adapter.enumerable.AggAddContext;
import org.apache.calcite.adapter.enumerable.AggContext;
import org.apache.calcite.adapter.enumerable.AggImplementor;
import org.apache.calcite.adapter.enumerable.AggResetContext;
import org.apache.calcite.adapter.enumerable.EnumUtils;
import org.apache.calcite.adapter.enumerable.StrictAggImplementor;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.schema.FunctionParameter;
import org.apache.calcite.schema.ImplementableAggFunction;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.sql.SqlIdentifier;
import org.apache.calcite.sql.parser.SqlParserPos;
import org.apache.calcite.sql.type.OperandTypes;
import org.apache.calcite.sql.validate.SqlUserDefinedAggFunction;
import org.apache.calcite.util.Optionality;

/**
 * An aggregate that is computed value by value, in the form that Calcite needs for functions other
 * than its own.
 *
 * @param type of the result
 * @param first the state before the first value
 * @param owner of the method
 * @param method computes the next state from the state and the next value
 * @param more further arguments of the method
 */
record Accumulator(RelDataType type, Expression first, Class<?> owner, String method,
        List<Expression> more) implements ImplementableAggFunction {
    /** A function like another one that is computed so. */
    SqlAggFunction insteadOf(SqlAggFunction like) {
        return new SqlUserDefinedAggFunction(
                new SqlIdentifier(like.getName(), SqlParserPos.ZERO), like.getKind(),
                binding -> type, null,
                OperandTypes.operandMetadata(List.of(), factory -> List.of(), null, any -> true),
                this, false, false, Optionality.FORBIDDEN);
    }

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
                reset.currentBlock().add(Expressions.statement(
                        Expressions.assign(reset.accumulator().get(0), first)));
            }

            @Override
            protected void implementNotNullAdd(AggContext info, AggAddContext add) {
                Expression found = add.accumulator().get(0);
                Expression value = EnumUtils.convert(add.arguments().get(0), found.getType());
                accAdvance(add, found, Expressions.call(owner, method,
                        Stream.concat(Stream.of(found, value), more.stream()).toList()));
            }
        };
    }
}
