package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.run.Cancellation;
import io.entresol.jdbc.internal.run.GoesOn;
import io.entresol.jdbc.internal.run.Watch;
import java.lang.reflect.Method;
import java.util.List;
import org.apache.calcite.DataContext;
import org.apache.calcite.adapter.enumerable.EnumerableHashJoin;
import org.apache.calcite.adapter.enumerable.EnumerableNestedLoopJoin;
import org.apache.calcite.adapter.enumerable.EnumerableRel;
import org.apache.calcite.adapter.enumerable.EnumerableRelImplementor;
import org.apache.calcite.linq4j.AbstractEnumerable;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.Enumerator;
import org.apache.calcite.linq4j.TransformedEnumerator;
import org.apache.calcite.linq4j.tree.BlockBuilder;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.linq4j.tree.Types;
import org.apache.calcite.plan.RelTraitSet;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.SingleRel;
import org.apache.calcite.rel.core.Correlate;
import org.apache.calcite.rel.core.Join;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexUtil;
import org.apache.calcite.sql.SqlIdentifier;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.SqlOperator;
import org.apache.calcite.sql.parser.SqlParserPos;
import org.apache.calcite.sql.type.OperandTypes;
import org.apache.calcite.sql.type.ReturnTypes;
import org.apache.calcite.sql.type.SqlTypeName;
import org.apache.calcite.sql.validate.SqlUserDefinedFunction;

/**
 * Rows of a join, until the run is cancelled; they may be many more than the rows read. If a join
 * tries pairs of rows and finds no match for long, its condition checks for the cancellation, too.
 */
final class Watched extends SingleRel implements EnumerableRel {
    /** One of so many rows looks: a look takes longer than a row. */
    private static final int ROWS = 256;
    private static final SqlOperator GOES_ON = new SqlUserDefinedFunction(
            new SqlIdentifier("GOES_ON", SqlParserPos.ZERO), SqlKind.OTHER_FUNCTION,
            ReturnTypes.BOOLEAN, null,
            OperandTypes.operandMetadata(List.of(), factory -> List.of(), null, any -> true),
            new GoesOn());

    private Watched(RelTraitSet traits, RelNode rows) {
        super(rows.getCluster(), traits, rows);
    }

    /** A join, and looks beside what it does. */
    static RelNode of(Join join) {
        RexBuilder builder = join.getCluster().getRexBuilder();
        RexNode condition = join.getCondition();
        boolean tries = join instanceof EnumerableNestedLoopJoin
                || join instanceof EnumerableHashJoin && !join.analyzeCondition().isEqui();
        Join looking = !tries || condition.isAlwaysTrue() ? join : join.copy(join.getTraitSet(),
                RexUtil.composeConjunction(builder, List.of(builder.makeCall(
                        builder.getTypeFactory().createSqlType(SqlTypeName.BOOLEAN), GOES_ON,
                        List.of()), condition)),
                join.getLeft(), join.getRight(), join.getJoinType(), join.isSemiJoinDone());
        return new Watched(looking.getTraitSet(), looking);
    }

    /** Rows that are made one for another. */
    static RelNode of(Correlate rows) {
        return new Watched(rows.getTraitSet(), rows);
    }

    @Override
    public RelNode copy(RelTraitSet traits, List<RelNode> inputs) {
        return new Watched(traits, inputs.get(0));
    }

    @Override
    public Result implement(EnumerableRelImplementor implementor, Prefer preferred) {
        BlockBuilder block = new BlockBuilder();
        Result input = implementor.visitChild(this, 0, (EnumerableRel) getInput(), preferred);
        Expression rows = block.append("rows", input.block);
        Watch watch = Watched::over;
        Method over = Types.lookupMethod(Watch.class, "over", Enumerable.class, DataContext.class);
        block.add(Expressions.return_(null, Expressions.call(
                implementor.stash(watch, Watch.class), over, rows, DataContext.ROOT)));
        return implementor.result(input.physType, block.toBlock());
    }

    private static Enumerable<Object> over(Enumerable<Object> rows, DataContext run) {
        Cancellation cancellation = Cancellation.of(run);
        return new AbstractEnumerable<>() {
            @Override
            public Enumerator<Object> enumerator() {
                return new TransformedEnumerator<>(rows.enumerator()) {
                    private int left = ROWS;

                    @Override
                    public boolean moveNext() {
                        left--;
                        if (left == 0) {
                            left = ROWS;
                            cancellation.check();
                        }
                        return super.moveNext();
                    }

                    @Override
                    protected Object transform(Object row) {
                        return row;
                    }
                };
            }
        };
    }
}
