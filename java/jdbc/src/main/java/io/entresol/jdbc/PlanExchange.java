package io.entresol.jdbc;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.apache.calcite.adapter.enumerable.EnumerableAggregate;
import org.apache.calcite.adapter.enumerable.EnumerableCalc;
import org.apache.calcite.adapter.enumerable.EnumerableRules;
import org.apache.calcite.adapter.enumerable.EnumerableWindow;
import org.apache.calcite.rel.RelHomogeneousShuttle;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.convert.ConverterRule;
import org.apache.calcite.rel.core.AggregateCall;
import org.apache.calcite.rel.core.Join;
import org.apache.calcite.rel.core.Window;
import org.apache.calcite.rel.logical.LogicalWindow;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexInputRef;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexProgram;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.tools.Program;
import org.apache.calcite.tools.Programs;

/**
 * Plans that are ready to be carried out, with {@link Exchange} in their expressions, sums that are
 * {@link CheckedSums}, and {@link FloatExtremes}.
 */
final class PlanExchange extends RelHomogeneousShuttle {
    /** Calcite's own planning, then that. */
    static final Program PROGRAM = Programs.sequence(
            (planner, plan, traits, materializations, lattices) -> {
                planner.setExecutor(Exchange.constants(
                        Objects.requireNonNull(planner.getExecutor())));
                return plan;
            }, Programs.standard(),
            (planner, plan, traits, materializations, lattices) -> plan.accept(
                    new PlanExchange(plan.getCluster().getRexBuilder())));
    private final RexBuilder builder;
    private final Exchange expressions;

    private PlanExchange(RexBuilder builder) {
        this.builder = builder;
        this.expressions = new Exchange(builder);
    }

    @Override
    public RelNode visit(RelNode node) {
        RelNode there = super.visit(node);
        if (there instanceof EnumerableCalc calc) {
            return exchanged(calc);
        } else if (there instanceof Join join) {
            return join.accept(expressions);
        } else if (there instanceof EnumerableAggregate aggregate) {
            return exchanged(aggregate);
        }
        return there instanceof EnumerableWindow window ? exchanged(window) : there;
    }

    private RelNode exchanged(EnumerableCalc calc) {
        RexProgram program = calc.getProgram();
        List<RexNode> cells = program.getProjectList().stream()
                .map(program::expandLocalRef).toList();
        List<RexNode> changed = expressions.apply(cells);
        RexNode condition = program.getCondition() == null ? null
                : program.expandLocalRef(program.getCondition());
        RexNode other = condition == null ? null : condition.accept(expressions);
        return changed.equals(cells) && Objects.equals(condition, other) ? calc
                : calc.copy(calc.getTraitSet(), calc.getInput(), RexProgram.create(
                        program.getInputRowType(), changed, other, program.getOutputRowType(),
                        builder));
    }

    private RelNode exchanged(EnumerableAggregate aggregate) {
        List<AggregateCall> calls = new ArrayList<>();
        for (AggregateCall call : aggregate.getAggCallList()) {
            SqlAggFunction function = function(call.getAggregation(), call.getType(),
                    aggregate.getInput(),
                    call.getArgList().isEmpty() ? -1 : call.getArgList().get(0));
            calls.add(AggregateCall.create(function, call.isDistinct(), call.isApproximate(),
                    call.ignoreNulls(), call.rexList, call.getArgList(), call.filterArg,
                    call.distinctKeys, call.getCollation(), call.getType(), call.getName()));
        }
        return aggregate.copy(aggregate.getTraitSet(), aggregate.getInput(),
                aggregate.getGroupSet(), aggregate.getGroupSets(), calls);
    }

    /** The one that is computed; of a column of the input, or none. */
    private static SqlAggFunction function(SqlAggFunction function, RelDataType type,
            RelNode input, int place) {
        SqlAggFunction sum = CheckedSums.of(function, type, input, place);
        if (sum != null) {
            return sum;
        }
        return FloatExtremes.isOne(function, type) ? FloatExtremes.of(function, type) : function;
    }

    /** The rule that makes such a window is the only way to one with other groups. */
    private static RelNode exchanged(EnumerableWindow window) {
        RelNode input = window.getInput();
        List<Window.Group> groups = window.groups.stream().map(group -> new Window.Group(
                group.keys, group.isRows, group.lowerBound, group.upperBound, group.exclude,
                group.orderKeys, group.aggCalls.stream()
                        .map(call -> exchanged(call, input)).toList())).toList();
        return ((ConverterRule) EnumerableRules.ENUMERABLE_WINDOW_RULE).convert(
                LogicalWindow.create(window.getTraitSet(), input, window.getConstants(),
                        window.getRowType(), groups));
    }

    private static Window.RexWinAggCall exchanged(Window.RexWinAggCall call, RelNode input) {
        int place = call.getOperands().isEmpty()
                || !(call.getOperands().get(0) instanceof RexInputRef first) ? -1
                : first.getIndex();
        return new Window.RexWinAggCall(
                function((SqlAggFunction) call.getOperator(), call.getType(), input, place),
                call.getType(), call.getOperands(), call.ordinal, call.distinct,
                call.ignoreNulls);
    }
}
