package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.run.Change;
import java.lang.reflect.Method;
import java.util.List;
import org.apache.calcite.DataContext;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableRel;
import org.apache.calcite.adapter.enumerable.EnumerableRelImplementor;
import org.apache.calcite.adapter.enumerable.PhysType;
import org.apache.calcite.adapter.enumerable.PhysTypeImpl;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.tree.BlockBuilder;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.linq4j.tree.Types;
import org.apache.calcite.plan.Convention;
import org.apache.calcite.plan.RelOptRule;
import org.apache.calcite.plan.RelOptUtil;
import org.apache.calcite.plan.RelTraitSet;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.convert.ConverterRule;
import org.apache.calcite.rel.core.TableModify;
import org.apache.calcite.rel.logical.LogicalTableModify;

/** INSERT, UPDATE and DELETE in a plan. */
final class CacheModify extends TableModify implements EnumerableRel {
    static final RelOptRule RULE = ConverterRule.Config.INSTANCE
            .withConversion(LogicalTableModify.class,
                    modify -> modify.getTable().unwrap(CacheTable.class) != null,
                    Convention.NONE, EnumerableConvention.INSTANCE, "CacheModify")
            .withRuleFactory(Rule::new).toRule();

    private CacheModify(TableModify modify, RelTraitSet traits, RelNode input) {
        super(modify.getCluster(), traits, modify.getTable(), modify.getCatalogReader(), input,
                modify.getOperation(), modify.getUpdateColumnList(),
                modify.getSourceExpressionList(), modify.isFlattened());
    }

    @Override
    public RelNode copy(RelTraitSet traits, List<RelNode> inputs) {
        return new CacheModify(this, traits, inputs.get(0));
    }

    @Override
    public Result implement(EnumerableRelImplementor implementor, Prefer preferred) {
        BlockBuilder block = new BlockBuilder();
        Result input = implementor.visitChild(this, 0, (EnumerableRel) getInput(), Prefer.ARRAY);
        Expression rows = block.append("rows", input.block);
        PhysType counts = PhysTypeImpl.of(implementor.getTypeFactory(), getRowType(),
                preferred.preferArray());
        CacheTable table = getTable().unwrap(CacheTable.class);
        Change change = new CacheChange(table, getOperation(),
                getUpdateColumnList() == null ? List.of() : getUpdateColumnList(), reads(table));
        Method carryOut = Types.lookupMethod(Change.class, "carryOut", Enumerable.class,
                DataContext.class);
        block.add(Expressions.return_(null, Expressions.call(
                implementor.stash(change, Change.class), carryOut, rows, DataContext.ROOT)));
        return implementor.result(counts, block.toBlock());
    }

    /** Whether the rows may come from the cache that is changed. */
    private boolean reads(CacheTable table) {
        return RelOptUtil.findTables(getInput()).stream()
                .map(each -> each.unwrap(CacheTable.class))
                .anyMatch(each -> each != null && each.sharesCacheWith(table));
    }

    private static final class Rule extends ConverterRule {
        Rule(Config config) {
            super(config);
        }

        @Override
        public RelNode convert(RelNode node) {
            TableModify modify = (TableModify) node;
            RelTraitSet traits = node.getTraitSet().replace(EnumerableConvention.INSTANCE);
            return new CacheModify(modify, traits, convert(modify.getInput(),
                    modify.getInput().getTraitSet().replace(EnumerableConvention.INSTANCE)));
        }
    }
}
