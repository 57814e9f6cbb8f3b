package io.entresol.jdbc.internal.plan;

import org.apache.calcite.rel.RelHomogeneousShuttle;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.logical.LogicalFilter;
import org.apache.calcite.rel.logical.LogicalJoin;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexShuttle;
import org.apache.calcite.rex.RexSubQuery;
import org.apache.calcite.rex.RexUtil;

/**
 * Conditions in which the common parts of all branches of an {@code or} stand before it: {@code (a
 * and b) or (a and c)} is {@code a and (b or c)}, with nulls too. So a condition of a join in each
 * branch can drive the join; otherwise all pairs of rows would be tried.
 */
final class CommonFactors {
    private CommonFactors() {}

    /** A plan with them, also in queries inside of conditions. */
    static RelNode before(RelNode plan) {
        RexShuttle inside = new RexShuttle() {
            @Override
            public RexNode visitSubQuery(RexSubQuery query) {
                RexSubQuery there = (RexSubQuery) super.visitSubQuery(query);
                return there.clone(before(there.rel));
            }
        };
        return plan.accept(new RelHomogeneousShuttle() {
            @Override
            public RelNode visit(RelNode node) {
                return changed(super.visit(node).accept(inside));
            }
        });
    }

    private static RelNode changed(RelNode node) {
        RexBuilder builder = node.getCluster().getRexBuilder();
        if (node instanceof LogicalFilter filter) {
            RexNode pulled = pulled(builder, filter.getCondition());
            return pulled == null ? node
                    : filter.copy(filter.getTraitSet(), filter.getInput(), pulled);
        } else if (node instanceof LogicalJoin join) {
            RexNode pulled = pulled(builder, join.getCondition());
            return pulled == null ? node : join.copy(join.getTraitSet(), pulled, join.getLeft(),
                    join.getRight(), join.getJoinType(), join.isSemiJoinDone());
        }
        return node;
    }

    /** Null where nothing changes: chance in two branches is not the same one. */
    private static RexNode pulled(RexBuilder builder, RexNode condition) {
        if (!RexUtil.isDeterministic(condition)) {
            return null;
        }
        RexNode pulled = RexUtil.pullFactors(builder, condition);
        return pulled.equals(condition) ? null : pulled;
    }
}
