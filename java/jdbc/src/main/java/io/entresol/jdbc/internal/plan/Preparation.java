package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.dialect.Dialect;
import io.entresol.jdbc.internal.dialect.Exchange;
import io.entresol.jdbc.internal.dialect.JdbcFunctions;
import io.entresol.jdbc.internal.dialect.Texts;
import java.lang.reflect.Type;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableRules;
import org.apache.calcite.jdbc.CalciteSchema;
import org.apache.calcite.plan.Convention;
import org.apache.calcite.plan.RelOptCluster;
import org.apache.calcite.plan.RelOptCostFactory;
import org.apache.calcite.plan.RelOptPlanner;
import org.apache.calcite.plan.RelOptRule;
import org.apache.calcite.prepare.CalcitePrepareImpl;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.convert.ConverterRule;
import org.apache.calcite.rel.core.JoinRelType;
import org.apache.calcite.rel.logical.LogicalJoin;
import org.apache.calcite.rel.logical.LogicalSort;
import org.apache.calcite.rel.logical.LogicalUnion;
import org.apache.calcite.rel.metadata.ChainedRelMetadataProvider;
import org.apache.calcite.rel.rules.JoinCommuteRule;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.runtime.CalciteContextException;
import org.apache.calcite.runtime.Hook;
import org.apache.calcite.sql.SqlNode;
import org.apache.calcite.sql.type.SqlTypeFamily;
import org.apache.calcite.sql2rel.SqlRexConvertlet;
import org.apache.calcite.sql2rel.SqlRexConvertletTable;
import org.apache.calcite.tools.Program;
import org.apache.calcite.util.Holder;

/**
 * The planning of statements with the rules of caches; errors name the existing tables and columns.
 */
public final class Preparation extends CalcitePrepareImpl {
    private static final Pattern NO_TABLE = Pattern.compile("Object '([^']*)' not found.*");
    private static final Pattern NO_PREFIX = Pattern.compile("Table '([^']*)' not found.*");
    private static final Pattern END = Pattern.compile("\\s*;\\s*$");
    /** Calcite takes it for an insert; databases that have it differ in what it leaves. */
    private static final Pattern UPSERT = Pattern.compile(
            "(?:\\s|--[^\\n]*\\n|/\\*.*?\\*/)*+upsert\\b.*",
            Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
    private static final String EXPECTED = "Was expecting one of:";
    /** Of a longer list of what was expected nobody learns anything. */
    private static final int EXPECTED_MAX = 400;
    /** What the compiler of Java throws, which is no dependency of this. */
    private static final String INTERNAL_LIMIT =
            "org.codehaus.commons.compiler.InternalCompilerException";
    private static final String TOO_LONG =
            "the statement is too long to be carried out; make several of it";
    private static final Pattern NO_COLUMN =
            Pattern.compile("(?:Column '([^']*)' not found|Unknown target column '([^']*)').*");

    /** A right join as a left one of the same: what may be looked up is then on the right. */
    private static final RelOptRule MIRRORED = JoinCommuteRule.Config.DEFAULT
            .withOperandSupplier(top -> top.operand(LogicalJoin.class)
                    .predicate(join -> join.getJoinType() == JoinRelType.RIGHT).anyInputs())
            .withDescription("JoinCommuteRule:right")
            .as(JoinCommuteRule.Config.class).withSwapOuter(true).toRule();

    /**
     * Rows that are sorted already are merged by numbers only: an index orders texts by code point,
     * the code that Calcite makes by the units of UTF-16.
     */
    private static final RelOptRule MERGED_JOIN =
            ((ConverterRule) EnumerableRules.ENUMERABLE_MERGE_JOIN_RULE).config
                    .withConversion(LogicalJoin.class,
                            join -> join.analyzeCondition().leftKeys.stream()
                                    .allMatch(column -> isMerged(join.getLeft(), column)),
                            Convention.NONE, EnumerableConvention.INSTANCE,
                            "EnumerableMergeJoinRule:numbers")
                    .toRule();
    private static final RelOptRule MERGED_UNION = EnumerableRules.ENUMERABLE_MERGE_UNION_RULE
            .config.withOperandSupplier(top -> top.operand(LogicalSort.class)
                    .predicate(sort -> sort.getCollation().getKeys().stream()
                            .allMatch(column -> isMerged(sort, column)))
                    .oneInput(below -> below.operand(LogicalUnion.class).anyInputs()))
            .withDescription("EnumerableMergeUnionRule:numbers").toRule();

    /** Whether the statement has texts whose order is not that of their units. */
    private boolean mixed;

    @Override
    protected RelOptPlanner createPlanner(Context context,
            org.apache.calcite.plan.Context external, RelOptCostFactory costs) {
        RelOptPlanner planner = super.createPlanner(context, external, costs);
        planner.setExecutor(Exchange.constants(Objects.requireNonNull(planner.getExecutor()),
                PlanExchange.arithmetic(planner)));
        planner.addRule(CacheModify.RULE);
        planner.addRule(MIRRORED);
        planner.removeRule(EnumerableRules.ENUMERABLE_MERGE_JOIN_RULE);
        planner.addRule(MERGED_JOIN);
        planner.removeRule(EnumerableRules.ENUMERABLE_MERGE_UNION_RULE);
        planner.addRule(MERGED_UNION);
        return planner;
    }

    /** Where texts are mixed, the planner sees comparisons of them that it does not carry out. */
    @Override
    protected SqlRexConvertletTable createConvertletTable() {
        SqlRexConvertletTable plain = super.createConvertletTable();
        return !mixed ? plain : call -> {
            SqlRexConvertlet convertlet = plain.get(call);
            return convertlet == null ? null : (context, converted) ->
                    convertlet.convertCall(context, converted)
                            .accept(Exchange.comparisons(context.getRexBuilder()));
        };
    }

    /** Whether a column is of what is in one order wherever it comes from. */
    private static boolean isMerged(RelNode rows, int column) {
        return rows.getRowType().getFieldList().get(column).getType().getFamily()
                != SqlTypeFamily.CHARACTER;
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
        if (query.sql != null && UPSERT.matcher(query.sql).matches()) {
            throw new IllegalArgumentException(
                    "UPSERT is not there; there are INSERT, UPDATE and DELETE");
        }
        mixed = query.sql != null && Texts.areMixed(query.sql);
        try (Hook.Closeable parsed = Hook.PARSE_TREE.addThread(
                (Object[] statement) -> JdbcFunctions.inCapitals((SqlNode) statement[1]));
                Hook.Closeable planning = Hook.PROGRAM.addThread(
                        (Holder<Program> program) -> program.set(PlanExchange.PROGRAM))) {
            return super.prepareSql(Dialect.in(context), plain(context, query), element, rows);
        } catch (StackOverflowError tooDeep) {
            throw new IllegalArgumentException(TOO_LONG, tooDeep);
        } catch (CalciteContextException mistake) {
            String reason = mistake.getCause() == null ? "" : mistake.getCause().getMessage();
            String told = told(context, query.sql == null ? "" : query.sql, reason);
            if (told == null) {
                throw mistake;
            }
            throw new IllegalArgumentException("line " + mistake.getPosLine() + ", column "
                    + mistake.getPosColumn() + ": " + told, mistake);
        } catch (RuntimeException mistake) {
            if (isTooLong(mistake)) {
                throw new IllegalArgumentException(TOO_LONG, mistake);
            }
            String said = String.valueOf(mistake.getMessage());
            int expected = said.indexOf(EXPECTED);
            // Of a statement that ends too soon that is every word that there is.
            if (expected < 0 || said.length() - expected < EXPECTED_MAX) {
                throw mistake;
            }
            throw new IllegalArgumentException(said.substring(0, expected).strip(), mistake);
        }
    }

    /** Code of Java has limits that a statement has not. */
    private static boolean isTooLong(Throwable mistake) {
        for (Throwable cause = mistake; cause != null; cause = cause.getCause()) {
            if (cause instanceof StackOverflowError
                    || cause.getClass().getName().equals(INTERNAL_LIMIT)) {
                return true;
            }
        }
        return false;
    }

    /** The query in SQL. */
    private static <T> Query<T> plain(Context context, Query<T> query) {
        String indexes = query.sql == null ? null : IndexInfo.answer(query.sql, tables(context));
        return indexes == null ? withoutEnd(query) : Query.of(indexes);
    }

    private static CalciteSchema tables(Context context) {
        CalciteSchema schema = context.getRootSchema();
        for (String name : context.getDefaultSchemaPath()) {
            schema = schema.getSubSchema(name, false);
        }
        return schema;
    }

    /** The semicolon that ends a statement is none of it: programs send it all the same. */
    private static <T> Query<T> withoutEnd(Query<T> query) {
        if (query.sql == null) {
            return query;
        }
        String sql = END.matcher(query.sql).replaceFirst("");
        return sql.equals(query.sql) ? query : Query.of(sql);
    }

    /** The mistake with the names that there are; null if it is of another kind. */
    private static String told(Context context, String sql, String reason) {
        CalciteSchema schema = tables(context);
        Matcher table = NO_TABLE.matcher(reason);
        if (table.matches()) {
            TreeSet<String> tables = new TreeSet<>(schema.getTableNames());
            return "there is no table `" + table.group(1) + "`; there are "
                    + (tables.isEmpty() ? "none" : tables) + ": caches of ProtoStream values that have an index";
        }
        Matcher dotted = NO_PREFIX.matcher(reason);
        if (dotted.matches()) {
            return dotted(schema, sql, dotted.group(1));
        }
        Matcher column = NO_COLUMN.matcher(reason);
        if (!column.matches()) {
            return null;
        }
        StringBuilder known = new StringBuilder();
        meant(schema, sql).forEach((each, columns) ->
                known.append("; ").append(each).append(" has ").append(columns));
        return "there is no column `"
                + (column.group(1) == null ? column.group(2) : column.group(1)) + "`" + known;
    }

    /** The columns of tables that the statement may mean: those that it names. */
    private static Map<String, List<String>> meant(CalciteSchema schema, String sql) {
        Map<String, List<String>> meant = new TreeMap<>();
        for (String each : schema.getTableNames()) {
            if (Pattern.compile("(?i)\\b" + Pattern.quote(each) + "\\b").matcher(sql).find()) {
                meant.put(each, ((CacheTable) schema.getTable(each, true).getTable())
                        .columns().stream().map(Column::name).toList());
            }
        }
        return meant;
    }

    /** Fields of a field look like a table's columns; null if there are none. */
    private static String dotted(CalciteSchema schema, String sql, String name) {
        String prefix = name.toLowerCase(Locale.ROOT) + ".";
        List<String> fields = meant(schema, sql).values().stream().flatMap(List::stream)
                .filter(column -> column.toLowerCase(Locale.ROOT).startsWith(prefix))
                .distinct().map(column -> '"' + column + '"').toList();
        return fields.isEmpty() ? null : "there is no table `" + name
                + "`; columns with dots in their names are quoted: " + String.join(", ", fields);
    }
}
