package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.aggregate.CheckedSums;
import io.entresol.jdbc.internal.aggregate.FloatExtremes;
import io.entresol.jdbc.internal.aggregate.TextExtremes;
import io.entresol.jdbc.internal.dialect.Exchange;
import io.entresol.jdbc.internal.dialect.Neighbours;
import io.entresol.jdbc.internal.dialect.Texts;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.apache.calcite.adapter.enumerable.EnumerableAggregate;
import org.apache.calcite.adapter.enumerable.EnumerableCalc;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableRules;
import org.apache.calcite.adapter.enumerable.EnumerableWindow;
import org.apache.calcite.config.CalciteConnectionConfig;
import org.apache.calcite.plan.RelOptPlanner;
import org.apache.calcite.rel.RelCollation;
import org.apache.calcite.rel.RelCollations;
import org.apache.calcite.rel.RelFieldCollation;
import org.apache.calcite.rel.RelHomogeneousShuttle;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.convert.ConverterRule;
import org.apache.calcite.rel.core.AggregateCall;
import org.apache.calcite.rel.core.Correlate;
import org.apache.calcite.rel.core.Join;
import org.apache.calcite.rel.core.Sort;
import org.apache.calcite.rel.core.Window;
import org.apache.calcite.rel.logical.LogicalWindow;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeField;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexInputRef;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexProgram;
import org.apache.calcite.rex.RexShuttle;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.tools.Program;
import org.apache.calcite.tools.Programs;

/**
 * Replaces parts of plans that are ready to be carried out: expressions by {@link Exchange}, sums
 * by {@link CheckedSums}, extremes by {@link FloatExtremes} and {@link TextExtremes}. Rows sorted
 * by texts get the order of {@link Texts}: Calcite sorts them by columns that are added for that.
 * Joins are {@link Watched}.
 */
final class PlanExchange extends RelHomogeneousShuttle {
    /** Factors in front, rows that are listed as such, Calcite's own planning, then that. */
    static final Program PROGRAM = Programs.sequence(
            (planner, plan, traits, materializations, lattices) -> {
                planner.setExecutor(Exchange.constants(
                        Objects.requireNonNull(planner.getExecutor()), arithmetic(planner)));
                return ListedRows.in(CommonFactors.before(plan), arithmetic(planner));
            }, Programs.standard(),
            (planner, plan, traits, materializations, lattices) -> plan.accept(
                    new PlanExchange(plan.getCluster().getRexBuilder(), arithmetic(planner))));
    private static final Set<SqlKind> ONES_OF_THE_LEAST_OR_GREATEST =
            Set.of(SqlKind.ARG_MIN, SqlKind.ARG_MAX);

    private final RexBuilder builder;
    private final Exchange expressions;

    private PlanExchange(RexBuilder builder, Exchange.Arithmetic arithmetic) {
        this.builder = builder;
        this.expressions = new Exchange(builder, arithmetic);
    }

    static Exchange.Arithmetic arithmetic(RelOptPlanner planner) {
        CalciteConnectionConfig settings =
                planner.getContext().unwrap(CalciteConnectionConfig.class);
        return settings != null && settings.conformance().checkedArithmetic()
                ? Exchange.Arithmetic.CHECKED : Exchange.Arithmetic.WRAPPING;
    }

    @Override
    public RelNode visit(RelNode node) {
        RelNode there = super.visit(node);
        if (there instanceof EnumerableCalc calc) {
            return exchanged(calc);
        } else if (there instanceof Join join) {
            return Watched.of((Join) join.accept(expressions));
        } else if (there instanceof Correlate rows) {
            return Watched.of(rows);
        } else if (there instanceof Sort sort) {
            return exchanged(sort);
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

    private RelNode exchanged(Sort sort) {
        Keys keys = new Keys(sort.getInput());
        RelCollation order = keys.of(sort.getCollation());
        return keys.areNone() ? sort : keys.without(sort.copy(sort.getTraitSet().replace(order),
                keys.with(), order, sort.offset, sort.fetch), sort.getRowType());
    }

    private RelNode exchanged(EnumerableAggregate aggregate) {
        Keys keys = new Keys(aggregate.getInput());
        List<AggregateCall> calls = new ArrayList<>();
        for (AggregateCall call : aggregate.getAggCallList()) {
            List<Integer> arguments = new ArrayList<>(call.getArgList());
            if (ONES_OF_THE_LEAST_OR_GREATEST.contains(call.getAggregation().getKind())) {
                arguments.set(1, keys.of(arguments.get(1)));
            }
            SqlAggFunction function = function(call.getAggregation(), call.getType(),
                    aggregate.getInput(), arguments.isEmpty() ? -1 : arguments.get(0));
            calls.add(AggregateCall.create(function, call.isDistinct(), call.isApproximate(),
                    call.ignoreNulls(), call.rexList, arguments, call.filterArg,
                    call.distinctKeys, keys.of(call.getCollation()), call.getType(),
                    call.getName()));
        }
        return aggregate.copy(aggregate.getTraitSet(), keys.with(), aggregate.getGroupSet(),
                aggregate.getGroupSets(), calls);
    }

    /** The one that is computed; of a column of the input, or none. */
    private static SqlAggFunction function(SqlAggFunction function, RelDataType type,
            RelNode input, int place) {
        SqlAggFunction sum = CheckedSums.of(function, type, () -> column(input, place));
        if (function instanceof Neighbours ours) {
            return ours.plain();
        } else if (sum != null) {
            return sum;
        } else if (FloatExtremes.isOne(function, type)) {
            return FloatExtremes.of(function, type);
        }
        return TextExtremes.isOne(function, type) ? TextExtremes.of(function, type) : function;
    }

    /** The rule that makes such a window is the only way to one with other groups. */
    private RelNode exchanged(EnumerableWindow window) {
        RelNode input = window.getInput();
        int columns = input.getRowType().getFieldCount();
        Keys keys = new Keys(input);
        List<RelCollation> orders =
                window.groups.stream().map(group -> keys.of(group.orderKeys)).toList();
        RexShuttle moved = new RexShuttle() {
            @Override
            public RexNode visitInputRef(RexInputRef reference) {
                // Constants come after the columns.
                return reference.getIndex() < columns ? reference : new RexInputRef(
                        reference.getIndex() + keys.count(), reference.getType());
            }
        };
        List<Window.Group> groups = new ArrayList<>();
        for (Window.Group group : window.groups) {
            groups.add(new Window.Group(group.keys, group.isRows, group.lowerBound.accept(moved),
                    group.upperBound.accept(moved), group.exclude, orders.get(groups.size()),
                    group.aggCalls.stream().map(call -> exchanged(call, input, moved)).toList()));
        }
        RelDataType row = keys.row(window.getRowType().getFieldList().subList(columns,
                window.getRowType().getFieldCount()));
        RelNode made = ((ConverterRule) EnumerableRules.ENUMERABLE_WINDOW_RULE).convert(
                LogicalWindow.create(window.getTraitSet(), keys.with(), window.getConstants(),
                        keys.areNone() ? window.getRowType() : row, groups));
        return keys.areNone() ? made : keys.without(made, window.getRowType());
    }

    /** A column of an input, as people know it. */
    private static String column(RelNode input, int place) {
        // Constants of a window come after the columns of its input.
        if (place < 0 || place >= input.getRowType().getFieldCount()) {
            return CheckedSums.EXPRESSION;
        }
        if (input instanceof CacheScan scan && scan.query().totals() != null) {
            int call = place - scan.query().totals().groups().size();
            int of = scan.query().totals().calls().get(call).place();
            if (of >= scan.query().columns().size()) {
                return CheckedSums.EXPRESSION;
            }
            return of < 0 ? "rows" : '"' + scan.column(of).name() + '"';
        }
        String name = input.getRowType().getFieldNames().get(place);
        return name.contains("$") ? CheckedSums.EXPRESSION : '"' + name + '"';
    }

    private static Window.RexWinAggCall exchanged(Window.RexWinAggCall call, RelNode input,
            RexShuttle moved) {
        int place = call.getOperands().isEmpty()
                || !(call.getOperands().get(0) instanceof RexInputRef first) ? -1
                : first.getIndex();
        return new Window.RexWinAggCall(
                function((SqlAggFunction) call.getOperator(), call.getType(), input, place),
                call.getType(), moved.apply(call.getOperands()), call.ordinal, call.distinct,
                call.ignoreNulls);
    }

    /** Columns that are added to the rows of a node, to sort by instead of texts. */
    private final class Keys {
        private final RelNode rows;
        private final List<Integer> texts = new ArrayList<>();

        Keys(RelNode rows) {
            this.rows = rows;
        }

        boolean areNone() {
            return texts.isEmpty();
        }

        int count() {
            return texts.size();
        }

        private List<RelDataTypeField> columns() {
            return rows.getRowType().getFieldList();
        }

        /** The column to sort by instead of one. */
        int of(int place) {
            if (!Exchange.isText(columns().get(place).getType())) {
                return place;
            } else if (!texts.contains(place)) {
                texts.add(place);
            }
            return columns().size() + texts.indexOf(place);
        }

        RelCollation of(RelCollation order) {
            List<RelFieldCollation> changed = order.getFieldCollations().stream()
                    .map(each -> each.withFieldIndex(of(each.getFieldIndex()))).toList();
            return changed.equals(order.getFieldCollations()) ? order : RelCollations.of(changed);
        }

        /** The rows with them. */
        RelNode with() {
            if (texts.isEmpty()) {
                return rows;
            }
            List<RexNode> cells = new ArrayList<>(builder.identityProjects(rows.getRowType()));
            texts.forEach(place -> cells.add(Exchange.key(builder, cells.get(place))));
            return calc(rows, cells, row(List.of()));
        }

        /** The type of a row with them, and with more after them. */
        RelDataType row(List<RelDataTypeField> more) {
            var row = builder.getTypeFactory().builder().addAll(columns());
            texts.forEach(place -> row.add("key" + row.getFieldCount(),
                    columns().get(place).getType()));
            return row.addAll(more).build();
        }

        /** Rows that have them, as rows of another type have not. */
        RelNode without(RelNode keyed, RelDataType row) {
            List<RexNode> cells = new ArrayList<>(builder.identityProjects(keyed.getRowType()));
            cells.subList(columns().size(), columns().size() + texts.size()).clear();
            return calc(keyed, cells, row);
        }

        private RelNode calc(RelNode input, List<RexNode> cells, RelDataType row) {
            return new EnumerableCalc(rows.getCluster(),
                    rows.getCluster().traitSetOf(EnumerableConvention.INSTANCE), input,
                    RexProgram.create(input.getRowType(), cells, null, row, builder));
        }
    }
}
