package io.entresol.jdbc;

import java.util.ArrayList;
import java.util.List;
import org.apache.calcite.adapter.enumerable.AggAddContext;
import org.apache.calcite.adapter.enumerable.AggContext;
import org.apache.calcite.adapter.enumerable.AggImplementor;
import org.apache.calcite.adapter.enumerable.AggResetContext;
import org.apache.calcite.adapter.enumerable.EnumUtils;
import org.apache.calcite.adapter.enumerable.EnumerableAggregate;
import org.apache.calcite.adapter.enumerable.StrictAggImplementor;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.rel.RelHomogeneousShuttle;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.core.AggregateCall;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.schema.FunctionParameter;
import org.apache.calcite.schema.ImplementableAggFunction;
import org.apache.calcite.sql.SqlIdentifier;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.parser.SqlParserPos;
import org.apache.calcite.sql.type.OperandTypes;
import org.apache.calcite.sql.type.SqlTypeName;
import org.apache.calcite.sql.validate.SqlUserDefinedAggFunction;
import org.apache.calcite.tools.Program;
import org.apache.calcite.tools.Programs;
import org.apache.calcite.util.Optionality;

/**
 * Sums of BIGINT that leave their type are mistakes, as other arithmetic is; Calcite's own wrap
 * around. What adds is exchanged in plans that are ready to be carried out, so that no rule of the
 * planner sees another function than it knows. For the code that Calcite makes, not for other uses.
 */
public final class CheckedSums {
    /** Calcite's own planning, then that. */
    static final Program PROGRAM = Programs.sequence(Programs.standard(),
            (planner, plan, traits, materializations, lattices) -> plan.accept(new Exchange()));

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

    private static final class Exchange extends RelHomogeneousShuttle {
        @Override
        public RelNode visit(RelNode node) {
            RelNode there = super.visit(node);
            if (!(there instanceof EnumerableAggregate aggregate)) {
                return there;
            }
            List<AggregateCall> calls = new ArrayList<>();
            aggregate.getAggCallList().forEach(call -> calls.add(isSum(call)
                    ? checked(call, column(aggregate.getInput(), call.getArgList().get(0)))
                    : call));
            return aggregate.copy(aggregate.getTraitSet(), aggregate.getInput(),
                    aggregate.getGroupSet(), aggregate.getGroupSets(), calls);
        }
    }

    private static boolean isSum(AggregateCall call) {
        SqlKind kind = call.getAggregation().getKind();
        return (kind == SqlKind.SUM || kind == SqlKind.SUM0)
                && call.getType().getSqlTypeName() == SqlTypeName.BIGINT;
    }

    /** As people know it. */
    private static String column(RelNode input, int place) {
        if (input instanceof CacheScan scan && scan.query().totals() != null) {
            int call = place - scan.query().totals().groups().size();
            int of = scan.query().totals().calls().get(call).place();
            return of < 0 ? "rows" : '"' + scan.column(of).name() + '"';
        }
        String name = input.getRowType().getFieldNames().get(place);
        return name.contains("$") ? "an expression" : '"' + name + '"';
    }

    private static AggregateCall checked(AggregateCall call, String column) {
        SqlUserDefinedAggFunction function = new SqlUserDefinedAggFunction(
                new SqlIdentifier(call.getAggregation().getName(), SqlParserPos.ZERO),
                call.getAggregation().getKind(), binding -> call.getType(), null,
                OperandTypes.operandMetadata(List.of(), factory -> List.of(), null, any -> true),
                new Adding(column), false, false, Optionality.FORBIDDEN);
        return AggregateCall.create(function, call.isDistinct(), call.isApproximate(),
                call.ignoreNulls(), call.rexList, call.getArgList(), call.filterArg,
                call.distinctKeys, call.getCollation(), call.getType(), call.getName());
    }

    /** What Calcite asks of a function that is not its own. */
    private record Adding(String column) implements ImplementableAggFunction {
        @Override
        public RelDataType getReturnType(RelDataTypeFactory factory) {
            return factory.createSqlType(SqlTypeName.BIGINT);
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
                            reset.accumulator().get(0), Expressions.constant(0L))));
                }

                @Override
                public void implementNotNullAdd(AggContext info, AggAddContext add) {
                    Expression sum = add.accumulator().get(0);
                    Expression number = EnumUtils.convert(add.arguments().get(0), long.class);
                    accAdvance(add, sum, Expressions.call(CheckedSums.class, "add", sum, number,
                            Expressions.constant(column)));
                }
            };
        }
    }
}
