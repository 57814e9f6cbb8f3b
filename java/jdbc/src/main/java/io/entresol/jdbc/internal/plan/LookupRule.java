package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.column.ColumnType;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableHashJoin;
import org.apache.calcite.plan.RelOptRule;
import org.apache.calcite.plan.RelOptRuleCall;
import org.apache.calcite.plan.RelRule;
import org.apache.calcite.plan.RelTraitSet;
import org.apache.calcite.plan.volcano.RelSubset;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.core.Filter;
import org.apache.calcite.rel.core.Join;
import org.apache.calcite.rel.core.JoinInfo;
import org.apache.calcite.rel.core.JoinRelType;
import org.apache.calcite.rel.core.Project;
import org.apache.calcite.rel.logical.LogicalFilter;
import org.apache.calcite.rel.logical.LogicalJoin;
import org.apache.calcite.rel.logical.LogicalProject;
import org.apache.calcite.rex.RexOver;

/**
 * Finds joins whose right side is a cache, perhaps under a filter and a projection, and whose
 * condition is equality with its key or with a field of its index: matches can then be looked up.
 */
final class LookupRule extends RelRule<ScanRules.Settings> {
    /** For each shape of the right, from the join down. */
    static final List<RelOptRule> ALL = List.of(
            rule("scan", LookupRule::scan),
            rule("filter", below -> below.operand(LogicalFilter.class).oneInput(LookupRule::scan)),
            rule("project",
                    below -> below.operand(LogicalProject.class).oneInput(LookupRule::scan)),
            rule("project of filter", below -> below.operand(LogicalProject.class).oneInput(
                    filter -> filter.operand(LogicalFilter.class).oneInput(LookupRule::scan))));

    private LookupRule(ScanRules.Settings config) {
        super(config);
    }

    private static RelOptRule rule(String shape, OperandTransform right) {
        return new ScanRules.Settings("LookupJoin:" + shape,
                top -> top.operand(LogicalJoin.class).inputs(
                        left -> left.operand(RelSubset.class).anyInputs(), right),
                LookupRule::new).toRule();
    }

    private static Done scan(OperandBuilder below) {
        return ScanRules.scan(below);
    }

    @Override
    public void onMatch(RelOptRuleCall call) {
        LogicalJoin join = call.rel(0);
        JoinRelType type = join.getJoinType();
        boolean carriedOut = type == JoinRelType.INNER || type == JoinRelType.LEFT
                || type == JoinRelType.SEMI || type == JoinRelType.ANTI;
        List<RelNode> above = call.getRelList().subList(2, call.getRelList().size() - 1);
        CacheScan scan = call.rel(call.getRelList().size() - 1);
        if (!carriedOut || !scan.query().isPlain()
                || above.stream().anyMatch(LookupRule::needsAllRows)) {
            return;
        }
        JoinInfo equal = join.analyzeCondition();
        List<Column> columns = equal.rightKeys.stream()
                .map(place -> column(join, above, scan, place)).toList();
        int pair = chosen(scan, columns);
        if (pair >= 0) {
            CacheScan lookup = scan.with(scan.query().withLookup(
                    scan.cache().columns().indexOf(columns.get(pair))));
            call.transformTo(carried(join, above, lookup, pair));
        }
    }

    /** Whether a row of a node depends on others than the one that it is made of. */
    private static boolean needsAllRows(RelNode above) {
        return above instanceof Project project ? project.containsOver()
                : RexOver.containsOver(((Filter) above).getCondition());
    }

    /** The column that a place of the join's right shows, if it does so without loss. */
    private static Column column(Join join, List<RelNode> above, CacheScan scan, int place) {
        Predicates predicates = new Predicates(join.getCluster().getRexBuilder(), scan::column);
        return !above.isEmpty() && above.get(0) instanceof LogicalProject project
                ? predicates.reference(project.getProjects().get(place)) : scan.column(place);
    }

    /** The pair of columns to look up by: the key before a field; negative if there is none. */
    private static int chosen(CacheScan scan, List<Column> columns) {
        int chosen = -1;
        for (int pair = 0; pair < columns.size(); pair++) {
            Column column = columns.get(pair);
            if (column == null) {
                continue;
            } else if (column.findsEntries() && scan.query().where().isEmpty()) {
                return pair;
            } else if (chosen < 0 && column.can(Column.Index.SEARCH)
                    && column.type() != ColumnType.BOOLEAN && column.type() != ColumnType.ENUM) {
                chosen = pair;
            }
        }
        return chosen;
    }

    private static RelNode carried(Join join, List<RelNode> above, CacheScan lookup, int pair) {
        RelNode right = lookup;
        List<RelNode> upwards = new ArrayList<>(above);
        Collections.reverse(upwards);
        for (RelNode each : upwards) {
            right = each.copy(each.getTraitSet(), List.of(right));
        }
        RelTraitSet traits = join.getCluster().traitSetOf(EnumerableConvention.INSTANCE);
        RelNode left = converted(join.getLeft());
        Join other = EnumerableHashJoin.create(left, converted(join.getRight()),
                join.getCondition(), join.getVariablesSet(), join.getJoinType());
        return new LookupJoin(traits, left, converted(right), join.getCondition(),
                join.getVariablesSet(), join.getJoinType(),
                new LookupJoin.Lookup(lookup, pair, other));
    }

    private static RelNode converted(RelNode input) {
        return RelOptRule.convert(input,
                input.getTraitSet().replace(EnumerableConvention.INSTANCE));
    }
}
