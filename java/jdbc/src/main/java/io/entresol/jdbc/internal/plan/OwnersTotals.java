package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.aggregate.Formulas;
import io.entresol.jdbc.internal.aggregate.Totals;
import io.entresol.jdbc.internal.dialect.Dialect;
import io.entresol.jdbc.internal.rows.CacheQuery;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.calcite.config.CalciteConnectionConfig;
import org.apache.calcite.plan.RelOptRule;
import org.apache.calcite.plan.RelOptRuleCall;
import org.apache.calcite.plan.RelOptUtil;
import org.apache.calcite.plan.RelRule;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.core.AggregateCall;
import org.apache.calcite.rel.logical.LogicalAggregate;
import org.apache.calcite.rel.logical.LogicalFilter;
import org.apache.calcite.rel.logical.LogicalProject;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.rex.RexInputRef;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexUtil;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.type.SqlTypeName;
import org.apache.calcite.sql.type.SqlTypeUtil;
import org.apache.calcite.util.ImmutableBitSet;
import org.apache.calcite.util.mapping.Mappings;

/**
 * Aggregates that each owner computes of its own entries, and that the node that is asked combines:
 * totals travel from node to node, rows do not. The owners also compute the expressions in
 * aggregates, and conditions that no index decides, if these mean the same on all nodes. A node
 * that has all entries computes totals from its index, hit by hit, and keeps no rows.
 */
final class OwnersTotals extends RelRule<ScanRules.Settings> {
    /** For each shape of what is aggregated, from the aggregate down. */
    static final List<RelOptRule> ALL = List.of(
            rule("scan", ScanRules::scan),
            rule("filter",
                    below -> below.operand(LogicalFilter.class).oneInput(ScanRules::scan)),
            rule("project",
                    below -> below.operand(LogicalProject.class).oneInput(ScanRules::scan)),
            rule("project of filter", below -> below.operand(LogicalProject.class).oneInput(
                    filter -> filter.operand(LogicalFilter.class).oneInput(ScanRules::scan))));

    /** Sums that are computed as Calcite does, whatever comes first. */
    private static final Set<SqlTypeName> SUMMED = Set.of(SqlTypeName.INTEGER, SqlTypeName.BIGINT,
            SqlTypeName.REAL, SqlTypeName.DOUBLE);

    private OwnersTotals(ScanRules.Settings config) {
        super(config);
    }

    private static RelOptRule rule(String shape, OperandTransform input) {
        return new ScanRules.Settings("OwnersTotals:" + shape,
                top -> top.operand(LogicalAggregate.class).oneInput(input),
                OwnersTotals::new).toRule();
    }

    @Override
    public void onMatch(RelOptRuleCall call) {
        List<RelNode> nodes = call.getRelList();
        CacheScan scan = call.rel(nodes.size() - 1);
        List<RexNode> cells = null;
        RexNode condition = null;
        for (RelNode each : nodes.subList(1, nodes.size() - 1)) {
            if (each instanceof LogicalProject project) {
                cells = project.getProjects();
            } else {
                condition = ((LogicalFilter) each).getCondition();
            }
        }
        RelNode made = of(call.rel(0), new Aggregated(scan, cells, condition));
        if (made != null) {
            call.transformTo(made);
        }
    }

    /**
     * What is aggregated.
     *
     * @param cells what is computed of each row; null: the columns of the scan themselves
     * @param condition which rows are; null: all
     */
    private record Aggregated(CacheScan scan, List<RexNode> cells, RexNode condition) {
        RexNode cell(int place) {
            return cells == null ? RexInputRef.of(place, scan.getRowType()) : cells.get(place);
        }
    }

    /** The same aggregate of the owners' totals; null if they cannot compute them. */
    private static RelNode of(LogicalAggregate aggregate, Aggregated from) {
        List<AggregateCall> calls = aggregate.getAggCallList();
        Set<Integer> used = new TreeSet<>(aggregate.getGroupSet().asList());
        calls.forEach(call -> {
            used.addAll(call.getArgList());
            if (call.hasFilter()) {
                used.add(call.filterArg);
            }
        });
        if (!from.scan.query().isPlain() || used.isEmpty() && from.condition == null
                || !calls.stream().allMatch(call -> isGrouping(call) || isComputed(call, from))) {
            return null;
        }
        Prepared prepared = prepared(from, used);
        return prepared == null || !from.scan.cache().rows().computesTotals(
                prepared.scan.source()) ? null : totalled(aggregate, prepared);
    }

    /**
     * A scan of the columns that are needed, and the expressions over them.
     *
     * @param places of what the aggregate knows by other places, in the cells of a row
     */
    private record Prepared(CacheScan scan, Formulas formulas, List<Integer> places) {
        int place(int known) {
            return places.get(known);
        }
    }

    private static Prepared prepared(Aggregated from, Set<Integer> used) {
        List<RexNode> formulas = new ArrayList<>();
        Set<Integer> needed = new TreeSet<>();
        List<RexNode> cells = used.stream().map(from::cell).toList();
        cells.forEach(cell -> needed.addAll(columns(cell)));
        needed.addAll(from.condition == null ? Set.of() : columns(from.condition));
        if (needed.isEmpty()) {
            return null;
        }
        List<Integer> columns = List.copyOf(needed);
        List<Integer> places = new ArrayList<>();
        used.forEach(place -> {
            while (places.size() <= place) {
                places.add(null);
            }
            if (from.cell(place) instanceof RexInputRef column) {
                places.set(place, columns.indexOf(column.getIndex()));
            } else {
                places.set(place, columns.size() + formulas.size());
                formulas.add(from.cell(place));
            }
        });
        CacheQuery query = from.scan.query();
        CacheScan scan = from.scan.with(query.withColumns(
                columns.stream().map(query.columns()::get).toList()));
        Formulas told = formulas(from, scan, formulas, columns);
        return told == null ? null : new Prepared(scan, told, places);
    }

    private static List<Integer> columns(RexNode cell) {
        return RelOptUtil.InputFinder.bits(cell).asList();
    }

    /** The same expressions over the columns that are left, as nodes tell them; null: they cannot. */
    private static Formulas formulas(Aggregated from, CacheScan scan, List<RexNode> cells,
            List<Integer> columns) {
        if (cells.isEmpty() && from.condition == null) {
            return Formulas.NONE;
        }
        CalciteConnectionConfig settings = scan.getCluster().getPlanner().getContext()
                .unwrap(CalciteConnectionConfig.class);
        if (settings == null || !(settings.conformance() instanceof Dialect)) {
            return null;
        }
        Mappings.TargetMapping moved = Mappings.target(ScanRules.places(columns),
                from.scan.query().columns().size(), columns.size());
        List<RexNode> told = cells.stream().map(cell -> expanded(scan, cell, moved)).toList();
        return Formulas.of(told,
                from.condition == null ? null : expanded(scan, from.condition, moved),
                scan.getRowType());
    }

    private static RexNode expanded(CacheScan scan, RexNode node, Mappings.TargetMapping moved) {
        return RexUtil.expandSearch(scan.getCluster().getRexBuilder(), null,
                RexUtil.apply(moved, node));
    }

    private static RelNode totalled(LogicalAggregate aggregate, Prepared prepared) {
        List<Integer> groups = aggregate.getGroupSet().asList();
        List<Totals.Call> totals = new ArrayList<>();
        List<AggregateCall> combined = new ArrayList<>();
        for (AggregateCall call : aggregate.getAggCallList()) {
            if (isGrouping(call)) {
                combined.add(call.withArgList(
                        call.getArgList().stream().map(groups::indexOf).toList()));
            } else {
                combined.add(combined(call, groups.size() + totals.size()));
                totals.add(total(call, prepared));
            }
        }
        Totals computed = new Totals(groups.stream().map(prepared::place).toList(), totals,
                prepared.formulas);
        List<ImmutableBitSet> sets = aggregate.getGroupSets().stream()
                .map(set -> ImmutableBitSet.of(set.asList().stream().map(groups::indexOf).toList()))
                .toList();
        CacheScan scan = prepared.scan;
        return LogicalAggregate.create(scan.with(scan.query().withTotals(computed)), List.of(),
                ImmutableBitSet.range(groups.size()), sets, combined);
    }

    /** What tells of which group a row is, and not of rows. */
    private static boolean isGrouping(AggregateCall call) {
        return call.getAggregation().getKind() == SqlKind.GROUPING
                || call.getAggregation().getKind() == SqlKind.GROUPING_ID;
    }

    private static boolean isComputed(AggregateCall call, Aggregated from) {
        boolean alike = call.getArgList().size() <= 1
                && call.getCollation().getFieldCollations().isEmpty() && !call.ignoreNulls()
                && call.distinctKeys == null;
        return alike && switch (call.getAggregation().getKind()) {
            case COUNT -> !call.isDistinct();
            case SUM, SUM0 -> !call.isDistinct() && isSummed(call, from);
            case MIN, MAX -> true;
            default -> false;
        };
    }

    /** Whether parts of a sum are what it is itself. */
    private static boolean isSummed(AggregateCall call, Aggregated from) {
        RelDataTypeFactory factory = from.scan.getCluster().getTypeFactory();
        return SUMMED.contains(call.getType().getSqlTypeName())
                || call.getType().getSqlTypeName() == SqlTypeName.DECIMAL
                && SqlTypeUtil.equalSansNullability(call.getType(),
                        factory.getTypeSystem().deriveSumType(factory,
                                from.cell(call.getArgList().get(0)).getType()));
    }

    private static Totals.Call total(AggregateCall call, Prepared prepared) {
        Totals.Kind kind = switch (call.getAggregation().getKind()) {
            case COUNT -> Totals.Kind.COUNT;
            case SUM -> Totals.Kind.SUM;
            case SUM0 -> Totals.Kind.SUM_OR_ZERO;
            case MIN -> Totals.Kind.LEAST;
            default -> Totals.Kind.GREATEST;
        };
        int place = call.getArgList().isEmpty() ? -1 : prepared.place(call.getArgList().get(0));
        int filter = call.hasFilter() ? prepared.place(call.filterArg) : -1;
        return new Totals.Call(kind, place, filter, call.getType().getSqlTypeName());
    }

    /** What makes one of the totals at a place. */
    private static AggregateCall combined(AggregateCall call, int place) {
        SqlAggFunction function = call.getAggregation().getRollup();
        return AggregateCall.create(function, false, false, false, List.of(), List.of(place), -1,
                null, call.getCollation(), call.getType(), call.getName());
    }
}
