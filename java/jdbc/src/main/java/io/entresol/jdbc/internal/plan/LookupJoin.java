package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.rows.CacheQuery;
import io.entresol.jdbc.internal.run.Joining;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.Set;
import org.apache.calcite.DataContext;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableHashJoin;
import org.apache.calcite.adapter.enumerable.EnumerableRel;
import org.apache.calcite.adapter.enumerable.EnumerableRelImplementor;
import org.apache.calcite.adapter.enumerable.PhysType;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.function.Function1;
import org.apache.calcite.linq4j.function.Function2;
import org.apache.calcite.linq4j.tree.BlockBuilder;
import org.apache.calcite.linq4j.tree.BlockStatement;
import org.apache.calcite.linq4j.tree.Blocks;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.linq4j.tree.ParameterExpression;
import org.apache.calcite.linq4j.tree.Types;
import org.apache.calcite.plan.RelOptCost;
import org.apache.calcite.plan.RelOptPlanner;
import org.apache.calcite.plan.RelTraitSet;
import org.apache.calcite.rel.AbstractRelNode;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.core.CorrelationId;
import org.apache.calcite.rel.core.Join;
import org.apache.calcite.rel.core.JoinRelType;
import org.apache.calcite.rel.metadata.RelMetadataQuery;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.util.Util;

/**
 * A join with a cache from which it reads, by batches, only the matches of the rows on the left.
 * Each batch is joined as Calcite joins two inputs. The right is a {@link CacheRead} of a query
 * with a lookup, below the computations on its rows.
 */
final class LookupJoin extends Join implements EnumerableRel {
    /** An entry that is read by itself, in entries that are read in the order of the device. */
    private static final double EACH = 4;

    private final Lookup lookup;

    /**
     * What a join looks up.
     *
     * @param scan the reading of the cache, before anything is computed from it
     * @param pair which of the pairs of columns that must be equal it looks up
     * @param other the same join by a hash table of the right, for comparison
     */
    record Lookup(CacheScan scan, int pair, Join other) {
        private boolean ofKeys() {
            return scan.query().looksUpKeys(scan.cache().columns());
        }
    }

    LookupJoin(RelTraitSet traits, RelNode left, RelNode right, RexNode condition,
            Set<CorrelationId> variables, JoinRelType type, Lookup lookup) {
        super(left.getCluster(), traits, List.of(), left, right, condition, variables, type);
        this.lookup = lookup;
    }

    /** The join that it is compared with. */
    Join other() {
        return lookup.other();
    }

    @Override
    public LookupJoin copy(RelTraitSet traits, RexNode changed, RelNode newLeft, RelNode newRight,
            JoinRelType type, boolean done) {
        return new LookupJoin(traits, newLeft, newRight, changed, getVariablesSet(), type, lookup);
    }

    /** That of a join by a hash table, but for what is read. */
    @Override
    public RelOptCost computeSelfCost(RelOptPlanner planner, RelMetadataQuery metadata) {
        double rows = metadata.getRowCount(getLeft());
        double matches = lookup.ofKeys() ? 1 : JoinRows.SHARED;
        double each = lookup.scan().source() == CacheQuery.Source.INDEX ? 0.01 : EACH;
        double most = lookup.scan().cache().estimate(CacheQuery.all(1));
        double reads = Math.min(rows * matches, most) * each;
        double cost = metadata.getRowCount(this) + Util.nLogN(rows) + reads;
        return planner.getCostFactory().makeCost(
                joinType.projectsRight() ? cost : cost * 0.01 + reads, 0, 0);
    }

    @Override
    public Result implement(EnumerableRelImplementor implementor, Prefer preferred) {
        BlockBuilder block = new BlockBuilder();
        Result leftRows = implementor.visitChild(this, 0, (EnumerableRel) getLeft(), preferred);
        Expression leftInput = block.append("left", leftRows.block);
        Result rightRows = implementor.visitChild(this, 1, (EnumerableRel) getRight(), preferred);
        Expression rightOf = Expressions.lambda(Function1.class, rightRows.block, CacheRead.WANTED);
        Result joined = joined(implementor, preferred, leftRows.physType, rightRows.physType);
        Expression join = Expressions.lambda(Function2.class, joined.block, Given.BATCH,
                Given.MATCHES);
        Joining joining = new BatchJoin(lookup.scan().cache(), lookup.scan().query());
        Method method = Types.lookupMethod(Joining.class, "join", DataContext.class,
                Enumerable.class, Function1.class, Function1.class, Function1.class,
                Function2.class);
        int pair = lookup.pair();
        block.add(Expressions.return_(null, Expressions.call(
                implementor.stash(joining, Joining.class), method, DataContext.ROOT, leftInput,
                leftRows.physType.generateAccessor(List.of(joinInfo.leftKeys.get(pair))),
                rightRows.physType.generateAccessor(List.of(joinInfo.rightKeys.get(pair))),
                rightOf, join)));
        return implementor.result(joined.physType, block.toBlock());
    }

    /** The join of a batch with what it may match. */
    private Result joined(EnumerableRelImplementor implementor, Prefer preferred,
            PhysType leftRows, PhysType rightRows) {
        EnumerableHashJoin join = EnumerableHashJoin.create(
                new Given(getLeft(), leftRows, Given.BATCH),
                new Given(getRight(), rightRows, Given.MATCHES),
                getCondition(), getVariablesSet(), joinType);
        return join.implement(implementor, preferred);
    }

    /** Rows that the code around has in a variable. */
    private static final class Given extends AbstractRelNode implements EnumerableRel {
        static final ParameterExpression BATCH =
                Expressions.parameter(Modifier.FINAL, Enumerable.class, "batch");
        static final ParameterExpression MATCHES =
                Expressions.parameter(Modifier.FINAL, Enumerable.class, "matches");

        private final PhysType rows;
        private final ParameterExpression variable;

        Given(RelNode of, PhysType rows, ParameterExpression variable) {
            super(of.getCluster(), of.getCluster().traitSetOf(EnumerableConvention.INSTANCE));
            this.rowType = of.getRowType();
            this.rows = rows;
            this.variable = variable;
        }

        @Override
        public Result implement(EnumerableRelImplementor implementor, Prefer preferred) {
            BlockStatement itself = Blocks.toBlock(variable);
            return implementor.result(rows, itself);
        }
    }
}
