package io.entresol.jdbc;

import java.util.ArrayList;
import java.util.List;
import org.apache.calcite.adapter.enumerable.AggAddContext;
import org.apache.calcite.adapter.enumerable.AggContext;
import org.apache.calcite.adapter.enumerable.AggImplementor;
import org.apache.calcite.adapter.enumerable.AggResetContext;
import org.apache.calcite.adapter.enumerable.EnumUtils;
import org.apache.calcite.adapter.enumerable.EnumerableAggregate;
import org.apache.calcite.adapter.enumerable.EnumerableRules;
import org.apache.calcite.adapter.enumerable.EnumerableWindow;
import org.apache.calcite.adapter.enumerable.StrictAggImplementor;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.rel.RelHomogeneousShuttle;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.convert.ConverterRule;
import org.apache.calcite.rel.core.AggregateCall;
import org.apache.calcite.rel.core.Window;
import org.apache.calcite.rel.logical.LogicalWindow;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.rex.RexInputRef;
import org.apache.calcite.schema.FunctionParameter;
import org.apache.calcite.schema.ImplementableAggFunction;
import org.apache.calcite.sql.SqlAggFunction;
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
 * around. What adds is exchanged, and so is what finds {@link FloatExtremes}, in plans that are
 * ready to be carried out: no rule of the planner sees another function than it knows. For the
 * code that Calcite makes, not for other uses.
 */
public final class CheckedSums {
    /** Calcite's own planning, then that. */
    static final Program PROGRAM = Programs.sequence(Programs.standard(),
            (planner, plan, traits, materializations, lattices) -> plan.accept(new Exchange()));

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

    private static final class Exchange extends RelHomogeneousShuttle {
        @Override
        public RelNode visit(RelNode node) {
            RelNode there = super.visit(node);
            if (there instanceof EnumerableAggregate aggregate) {
                return exchanged(aggregate);
            }
            return there instanceof EnumerableWindow window ? exchanged(window) : there;
        }
    }

    private static RelNode exchanged(EnumerableAggregate aggregate) {
        List<AggregateCall> calls = new ArrayList<>();
        aggregate.getAggCallList().forEach(call -> calls.add(
                exchanged(call, aggregate.getInput())));
        return aggregate.copy(aggregate.getTraitSet(), aggregate.getInput(),
                aggregate.getGroupSet(), aggregate.getGroupSets(), calls);
    }

    private static AggregateCall exchanged(AggregateCall call, RelNode input) {
        SqlAggFunction function = call.getAggregation();
        if (isSum(function, call.getType())) {
            return with(call, checked(function, call.getType(),
                    column(input, call.getArgList().get(0))));
        }
        return FloatExtremes.isOne(function, call.getType())
                ? with(call, FloatExtremes.of(function, call.getType())) : call;
    }

    /** The rule that makes such a window is the only way to one with other groups. */
    private static RelNode exchanged(EnumerableWindow window) {
        List<Window.Group> groups = window.groups.stream().map(group -> new Window.Group(
                group.keys, group.isRows, group.lowerBound, group.upperBound, group.exclude,
                group.orderKeys, group.aggCalls.stream()
                        .map(call -> exchanged(call, window.getInput())).toList())).toList();
        return ((ConverterRule) EnumerableRules.ENUMERABLE_WINDOW_RULE).convert(
                LogicalWindow.create(window.getTraitSet(), window.getInput(),
                        window.getConstants(), window.getRowType(), groups));
    }

    private static Window.RexWinAggCall exchanged(Window.RexWinAggCall call, RelNode input) {
        SqlAggFunction function = (SqlAggFunction) call.getOperator();
        if (FloatExtremes.isOne(function, call.getType())) {
            return with(call, FloatExtremes.of(function, call.getType()));
        } else if (!isSum(function, call.getType())) {
            return call;
        }
        // Constants come after the columns of the input.
        int place = ((RexInputRef) call.getOperands().get(0)).getIndex();
        String column = place < input.getRowType().getFieldCount() ? column(input, place)
                : EXPRESSION;
        return with(call, checked(function, call.getType(), column));
    }

    private static Window.RexWinAggCall with(Window.RexWinAggCall call, SqlAggFunction function) {
        return new Window.RexWinAggCall(function, call.getType(), call.getOperands(), call.ordinal,
                call.distinct, call.ignoreNulls);
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

    private static AggregateCall with(AggregateCall call, SqlAggFunction function) {
        return AggregateCall.create(function, call.isDistinct(), call.isApproximate(),
                call.ignoreNulls(), call.rexList, call.getArgList(), call.filterArg,
                call.distinctKeys, call.getCollation(), call.getType(), call.getName());
    }

    private static SqlAggFunction checked(SqlAggFunction sum, RelDataType type, String column) {
        return computed(sum, type, new Adding(column));
    }

    /** A function like another one that is computed in its own way. */
    static SqlAggFunction computed(SqlAggFunction like, RelDataType type,
            ImplementableAggFunction way) {
        return new SqlUserDefinedAggFunction(
                new SqlIdentifier(like.getName(), SqlParserPos.ZERO), like.getKind(),
                binding -> type, null,
                OperandTypes.operandMetadata(List.of(), factory -> List.of(), null, any -> true),
                way, false, false, Optionality.FORBIDDEN);
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
