package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.column.Column;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.calcite.jdbc.CalciteSchema;
import org.apache.calcite.schema.Table;

/**
 * The answer of {@code DatabaseMetaData} about indexes: each column that can be looked up by
 * itself, the key first, because it alone is unique. Avatica's protocol has no question for this.
 * So a statement that is not SQL asks, and becomes SQL where the tables are.
 */
public final class IndexInfo {
    private static final String WORDS = "{entresol indexes ";
    private static final String UNIQUE = "unique ";
    private static final Pattern ASKED = Pattern.compile(
            Pattern.quote(WORDS) + "(" + UNIQUE + ")?of ([^{}]*)}", Pattern.DOTALL);

    private IndexInfo() {}

    /** The statement that asks for those of a table; {@code unique}: those that are. */
    public static String question(String table, boolean unique) {
        // No table has such a name, and it would end the question.
        String name = table.contains("{") || table.contains("}") ? "" : table;
        return WORDS + (unique ? UNIQUE : "") + "of " + name + "}";
    }

    /** The statement in SQL; null: it asks for something else. */
    static String answer(String statement, CalciteSchema tables) {
        Matcher asked = ASKED.matcher(statement);
        if (!asked.matches()) {
            return null;
        }
        boolean unique = asked.group(1) != null;
        String name = asked.group(2);
        CalciteSchema.TableEntry entry = tables.getTable(name, true);
        Table table = entry == null ? null : entry.getTable();
        List<Column> columns = table instanceof CacheTable cache ? cache.columns().stream()
                .filter(column -> column.findsEntries()
                        || !unique && column.can(Column.Index.SEARCH))
                .toList() : List.of();
        String rows = columns.stream().map(column -> "(" + quoted(column.name()) + ", "
                + !column.isKey() + ")").collect(Collectors.joining(", "));
        return "select cast(null as varchar) as \"TABLE_CAT\", cast(" + quoted(CacheSchema.NAME)
                + " as varchar) as \"TABLE_SCHEM\", cast(" + quoted(name)
                + " as varchar) as \"TABLE_NAME\", t.u as \"NON_UNIQUE\", "
                + "cast(null as varchar) as \"INDEX_QUALIFIER\", "
                + "cast(t.c as varchar) as \"INDEX_NAME\", cast(3 as smallint) as \"TYPE\", "
                + "cast(1 as smallint) as \"ORDINAL_POSITION\", "
                + "cast(t.c as varchar) as \"COLUMN_NAME\", "
                + "cast(null as varchar) as \"ASC_OR_DESC\", "
                + "cast(0 as bigint) as \"CARDINALITY\", cast(0 as bigint) as \"PAGES\", "
                + "cast(null as varchar) as \"FILTER_CONDITION\" from (values "
                + (rows.isEmpty() ? "('', true)" : rows) + ") as t(c, u)"
                + (rows.isEmpty() ? " where false" : "") + " order by 4, 6";
    }

    private static String quoted(String text) {
        return "'" + text.replace("'", "''") + "'";
    }
}
