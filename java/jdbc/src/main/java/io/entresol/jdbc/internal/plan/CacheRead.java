package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.rows.CacheQuery;
import io.entresol.jdbc.internal.run.Rows;
import io.entresol.jdbc.internal.run.Wanted;
import java.lang.reflect.Modifier;
import java.util.List;
import org.apache.calcite.DataContext;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableRel;
import org.apache.calcite.adapter.enumerable.EnumerableRelImplementor;
import org.apache.calcite.adapter.enumerable.PhysType;
import org.apache.calcite.adapter.enumerable.PhysTypeImpl;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.tree.Blocks;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.linq4j.tree.ParameterExpression;
import org.apache.calcite.plan.Convention;
import org.apache.calcite.plan.RelOptCost;
import org.apache.calcite.plan.RelOptPlanner;
import org.apache.calcite.plan.RelOptRule;
import org.apache.calcite.plan.RelTraitSet;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.convert.ConverterRule;
import org.apache.calcite.rel.metadata.RelMetadataQuery;

/** A {@link CacheScan} that can be carried out. */
final class CacheRead extends CacheScan implements EnumerableRel {
    static final RelOptRule RULE = ConverterRule.Config.INSTANCE
            .withConversion(CacheScan.class, Convention.NONE, EnumerableConvention.INSTANCE,
                    "CacheScan:read")
            .withRuleFactory(Rule::new).toRule();

    /** What a join wants of a query with a lookup, in the code that is made. */
    static final ParameterExpression WANTED =
            Expressions.parameter(Modifier.FINAL, Wanted.class, "wanted");

    private CacheRead(CacheScan scan, RelTraitSet traits) {
        super(scan.getCluster(), traits, scan.getTable(), scan.cache(), scan.query());
    }

    @Override
    public RelNode copy(RelTraitSet traits, List<RelNode> inputs) {
        return new CacheRead(this, traits);
    }

    /** An index is cheap, an entry is not, and what the cache does nobody else need do. */
    @Override
    public RelOptCost computeSelfCost(RelOptPlanner planner, RelMetadataQuery metadata) {
        if (query().lookup() != null) {
            // The join knows how much it looks up.
            return planner.getCostFactory().makeTinyCost();
        }
        double each = switch (source()) {
            case COUNT, INDEX -> 0.01;
            case HITS, KEYS -> 0.5;
            case ALL -> 1;
        };
        // Totals take rows from nobody who would compute them, and pass few on.
        double rows = query().totals() == null ? estimateRowCount(metadata) : estimateRead() * 0.5;
        double work = rows * each * (1 + query().columns().size() * 0.01);
        return planner.getCostFactory().makeCost(work, work, work);
    }

    @Override
    public Result implement(EnumerableRelImplementor implementor, Prefer preferred) {
        PhysType rows = PhysTypeImpl.of(implementor.getTypeFactory(), getRowType(),
                preferred.preferArray());
        Rows reading = new Reading(cache(), query());
        Expression stashed = implementor.stash(reading, Rows.class);
        return implementor.result(rows, Blocks.toBlock(query().lookup() == null
                ? Expressions.call(stashed, "read", DataContext.ROOT)
                : Expressions.call(stashed, "readWanted", DataContext.ROOT, WANTED)));
    }

    private record Reading(CacheTable cache, CacheQuery query) implements Rows {
        @Override
        public Enumerable<Object> read(DataContext run) {
            return query.read(cache.rows(), run);
        }

        @Override
        public Enumerable<Object> readWanted(DataContext run, Wanted wanted) {
            return query.narrowed(cache.columns(), wanted).read(cache.rows(), run);
        }
    }

    private static final class Rule extends ConverterRule {
        Rule(Config config) {
            super(config);
        }

        @Override
        public RelNode convert(RelNode node) {
            return new CacheRead((CacheScan) node,
                    node.getTraitSet().replace(EnumerableConvention.INSTANCE));
        }
    }
}
