package io.entresol.jdbc.internal.plan;

import com.google.common.collect.Lists;
import io.entresol.jdbc.internal.dialect.Exchange;
import io.entresol.jdbc.internal.dialect.Texts;
import io.entresol.jdbc.internal.run.Rows;
import io.entresol.jdbc.internal.run.Wanted;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.calcite.DataContext;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableRel;
import org.apache.calcite.adapter.enumerable.EnumerableRelImplementor;
import org.apache.calcite.adapter.enumerable.PhysType;
import org.apache.calcite.adapter.enumerable.PhysTypeImpl;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.Linq4j;
import org.apache.calcite.linq4j.function.Function1;
import org.apache.calcite.linq4j.tree.Blocks;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.plan.RelOptCluster;
import org.apache.calcite.plan.RelOptCost;
import org.apache.calcite.plan.RelOptPlanner;
import org.apache.calcite.rel.AbstractRelNode;
import org.apache.calcite.rel.RelHomogeneousShuttle;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.RelWriter;
import org.apache.calcite.rel.logical.LogicalProject;
import org.apache.calcite.rel.logical.LogicalUnion;
import org.apache.calcite.rel.logical.LogicalValues;
import org.apache.calcite.rel.metadata.RelMetadataQuery;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexExecutorImpl;
import org.apache.calcite.rex.RexLiteral;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexShuttle;
import org.apache.calcite.rex.RexSubQuery;
import org.apache.calcite.rex.RexUtil;

/**
 * Rows that a statement lists, as in {@code in} with many values. Calcite makes a node for each row
 * that is not all constants, and one expression for all of them, which may exceed the limits of
 * Java code. It also sorts rows of constants by the order of Java's strings.
 */
final class ListedRows extends AbstractRelNode implements EnumerableRel {
    /** Cells that are computed by one piece of code. */
    private static final int PIECE = 200;
    /** Constants that Calcite has code for. */
    private static final int CONSTANTS_MAX = 1000;

    private final List<RexNode> cells;
    private final Exchange.Arithmetic arithmetic;

    /**
     * Rows.
     *
     * @param cells of all rows, one row after the other
     */
    private ListedRows(RelOptCluster cluster, RelDataType row, List<RexNode> cells,
            Exchange.Arithmetic arithmetic) {
        super(cluster, cluster.traitSetOf(EnumerableConvention.INSTANCE));
        this.rowType = row;
        this.cells = cells;
        this.arithmetic = arithmetic;
    }

    /** A plan with them, where it lists rows otherwise, also in queries inside of conditions. */
    static RelNode in(RelNode plan, Exchange.Arithmetic arithmetic) {
        RexShuttle inside = new RexShuttle() {
            @Override
            public RexNode visitSubQuery(RexSubQuery query) {
                RexSubQuery there = (RexSubQuery) super.visitSubQuery(query);
                return there.clone(in(there.rel, arithmetic));
            }
        };
        return plan.accept(new RelHomogeneousShuttle() {
            @Override
            public RelNode visit(RelNode node) {
                List<RexNode> cells = cells(node);
                return cells == null ? super.visit(node).accept(inside) : new ListedRows(
                        node.getCluster(), node.getRowType(), cells, arithmetic);
            }
        });
    }

    /** The cells of a node's rows; null: it is another one, or Calcite knows what to do with it. */
    private static List<RexNode> cells(RelNode node) {
        if (node instanceof LogicalValues values) {
            List<RexNode> cells = listed(values, values.getRowType());
            return cells.size() > CONSTANTS_MAX || cells.stream().anyMatch(ListedRows::isMixed)
                    ? cells : null;
        }
        if (!(node instanceof LogicalUnion union) || !union.all
                || union.getRowType().getFieldCount() == 0) {
            return null;
        }
        List<RexNode> cells = new ArrayList<>();
        for (RelNode input : union.getInputs()) {
            List<RexNode> more = listed(input, union.getRowType());
            if (more == null) {
                return null;
            }
            cells.addAll(more);
        }
        return cells;
    }

    /** Whether it is a text whose place in the order of texts is not that of the string. */
    private static boolean isMixed(RexNode cell) {
        String text = Exchange.isText(cell.getType()) && cell instanceof RexLiteral literal
                ? RexLiteral.stringValue(literal) : null;
        return text != null && !Texts.key(text).equals(text);
    }

    private static List<RexNode> listed(RelNode node, RelDataType row) {
        List<RexNode> cells = new ArrayList<>();
        if (node instanceof LogicalValues values) {
            values.getTuples().forEach(cells::addAll);
        } else if (node instanceof LogicalProject project && !project.containsOver()
                && project.getInput() instanceof LogicalValues one && one.getTuples().size() == 1
                && project.getProjects().stream().allMatch(RexUtil::isConstant)) {
            cells.addAll(project.getProjects());
        } else {
            return null;
        }
        RexBuilder builder = node.getCluster().getRexBuilder();
        for (int place = 0; place < cells.size(); place++) {
            RelDataType type = row.getFieldList().get(place % row.getFieldCount()).getType();
            cells.set(place, builder.ensureType(type, cells.get(place), false));
        }
        return cells;
    }

    @Override
    public RelWriter explainTerms(RelWriter writer) {
        return super.explainTerms(writer).item("type", rowType)
                .item("rows", Lists.partition(cells, rowType.getFieldCount()));
    }

    @Override
    public double estimateRowCount(RelMetadataQuery metadata) {
        return (double) cells.size() / rowType.getFieldCount();
    }

    @Override
    public RelOptCost computeSelfCost(RelOptPlanner planner, RelMetadataQuery metadata) {
        return planner.getCostFactory().makeCost(estimateRowCount(metadata), 1, 0);
    }

    @Override
    public Result implement(EnumerableRelImplementor implementor, Prefer preferred) {
        PhysType rows = PhysTypeImpl.of(implementor.getTypeFactory(), rowType,
                preferred.preferArray());
        RexBuilder builder = getCluster().getRexBuilder();
        RelDataType nothing = builder.getTypeFactory().builder().build();
        List<Function1<DataContext, Object[]>> pieces = Lists.partition(
                new Exchange(builder, arithmetic).apply(cells), PIECE).stream()
                .map(piece -> RexExecutorImpl.getExecutable(builder, piece, nothing).getFunction())
                .toList();
        Rows listing = new Listing(pieces, rowType.getFieldCount());
        return implementor.result(rows, Blocks.toBlock(Expressions.call(
                implementor.stash(listing, Rows.class), "read", DataContext.ROOT)));
    }

    private record Listing(List<Function1<DataContext, Object[]>> pieces, int columns)
            implements Rows {
        @Override
        public Enumerable<Object> read(DataContext run) {
            List<Object> cells = new ArrayList<>();
            pieces.forEach(piece -> cells.addAll(Arrays.asList(piece.apply(run))));
            return Linq4j.asEnumerable(columns == 1 ? cells
                    : Lists.partition(cells, columns).stream().map(row -> (Object) row.toArray())
                            .toList());
        }

        @Override
        public Enumerable<Object> readWanted(DataContext run, Wanted wanted) {
            throw new UnsupportedOperationException("rows that are listed are not looked up");
        }
    }
}
