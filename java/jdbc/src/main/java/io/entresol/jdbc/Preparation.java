package io.entresol.jdbc;

import java.lang.reflect.Type;
import java.util.List;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.calcite.jdbc.CalciteSchema;
import org.apache.calcite.plan.RelOptCluster;
import org.apache.calcite.plan.RelOptCostFactory;
import org.apache.calcite.plan.RelOptPlanner;
import org.apache.calcite.plan.RelOptRule;
import org.apache.calcite.prepare.CalcitePrepareImpl;
import org.apache.calcite.rel.core.JoinRelType;
import org.apache.calcite.rel.logical.LogicalJoin;
import org.apache.calcite.rel.metadata.ChainedRelMetadataProvider;
import org.apache.calcite.rel.rules.JoinCommuteRule;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.runtime.CalciteContextException;

/** The planning of statements, with the rules of caches, and mistakes told with what there is. */
final class Preparation extends CalcitePrepareImpl {
    private static final Pattern NO_TABLE = Pattern.compile("Object '([^']*)' not found.*");
    private static final Pattern NO_COLUMN =
            Pattern.compile("(?:Column '([^']*)' not found|Unknown target column '([^']*)').*");

    /** A right join as a left one of the same: what may be looked up is then on the right. */
    private static final RelOptRule MIRRORED = JoinCommuteRule.Config.DEFAULT
            .withOperandSupplier(top -> top.operand(LogicalJoin.class)
                    .predicate(join -> join.getJoinType() == JoinRelType.RIGHT).anyInputs())
            .withDescription("JoinCommuteRule:right")
            .as(JoinCommuteRule.Config.class).withSwapOuter(true).toRule();

    @Override
    protected RelOptPlanner createPlanner(Context context,
            org.apache.calcite.plan.Context external, RelOptCostFactory costs) {
        RelOptPlanner planner = super.createPlanner(context, external, costs);
        planner.addRule(CacheModify.RULE);
        planner.addRule(MIRRORED);
        return planner;
    }

    @Override
    protected RelOptCluster createCluster(RelOptPlanner planner, RexBuilder builder) {
        RelOptCluster cluster = super.createCluster(planner, builder);
        cluster.setMetadataProvider(ChainedRelMetadataProvider.of(
                List.of(JoinRows.SOURCE, cluster.getMetadataProvider())));
        return cluster;
    }

    @Override
    public <T> CalciteSignature<T> prepareSql(Context context, Query<T> query, Type element,
            long rows) {
        try {
            return super.prepareSql(context, query, element, rows);
        } catch (CalciteContextException mistake) {
            String reason = mistake.getCause() == null ? "" : mistake.getCause().getMessage();
            String told = told(context, query.sql == null ? "" : query.sql, reason);
            if (told == null) {
                throw mistake;
            }
            throw new IllegalArgumentException("line " + mistake.getPosLine() + ", column "
                    + mistake.getPosColumn() + ": " + told, mistake);
        }
    }

    /** The mistake with the names that there are; null if it is of another kind. */
    private static String told(Context context, String sql, String reason) {
        CalciteSchema schema = context.getRootSchema();
        for (String name : context.getDefaultSchemaPath()) {
            schema = schema.getSubSchema(name, false);
        }
        Matcher table = NO_TABLE.matcher(reason);
        if (table.matches()) {
            return "there is no table `" + table.group(1) + "`; there are "
                    + new TreeSet<>(schema.getTableNames())
                    + ": caches of ProtoStream values that have an index";
        }
        Matcher column = NO_COLUMN.matcher(reason);
        if (!column.matches()) {
            return null;
        }
        StringBuilder known = new StringBuilder();
        for (String each : new TreeSet<>(schema.getTableNames())) {
            // Tables that the statement may mean: those that it names.
            if (Pattern.compile("(?i)\\b" + Pattern.quote(each) + "\\b").matcher(sql).find()) {
                List<String> names = ((CacheTable) schema.getTable(each, true).getTable())
                        .columns().stream().map(Column::name).toList();
                known.append("; ").append(each).append(" has ").append(names);
            }
        }
        return "there is no column `"
                + (column.group(1) == null ? column.group(2) : column.group(1)) + "`" + known;
    }
}
