package io.entresol.jdbc.internal.statement;

import io.entresol.jdbc.internal.plan.CacheSchema;
import io.entresol.jdbc.internal.plan.IndexInfo;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.regex.Pattern;
import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.avatica.AvaticaDatabaseMetaData;
import org.apache.calcite.config.NullCollation;
import org.apache.calcite.jdbc.CalciteConnection;

/** The metadata of a connection about the caches, which Avatica itself does not know. */
final class MetaData extends AvaticaDatabaseMetaData {
    /** What is no letter in a pattern. */
    private static final Pattern PATTERN = Pattern.compile("[\\\\%_]");

    private final AvaticaConnection connection;

    MetaData(AvaticaConnection connection) {
        super(connection);
        this.connection = connection;
    }

    @Override
    public boolean isReadOnly() {
        return false;
    }

    private NullCollation nulls() {
        return connection instanceof CalciteConnection here
                ? here.config().defaultNullCollation() : NullCollation.HIGH;
    }

    @Override
    public boolean nullsAreSortedHigh() {
        return nulls() == NullCollation.HIGH;
    }

    @Override
    public boolean nullsAreSortedLow() {
        return nulls() == NullCollation.LOW;
    }

    @Override
    public boolean nullsAreSortedAtStart() {
        return nulls() == NullCollation.FIRST;
    }

    @Override
    public boolean nullsAreSortedAtEnd() {
        return nulls() == NullCollation.LAST;
    }

    // Results are read once and forwards, and show what they read.

    @Override
    public boolean ownUpdatesAreVisible(int type) {
        return false;
    }

    @Override
    public boolean ownDeletesAreVisible(int type) {
        return false;
    }

    @Override
    public boolean ownInsertsAreVisible(int type) {
        return false;
    }

    @Override
    public boolean othersUpdatesAreVisible(int type) {
        return false;
    }

    @Override
    public boolean othersDeletesAreVisible(int type) {
        return false;
    }

    @Override
    public boolean othersInsertsAreVisible(int type) {
        return false;
    }

    @Override
    public boolean updatesAreDetected(int type) {
        return false;
    }

    @Override
    public boolean deletesAreDetected(int type) {
        return false;
    }

    @Override
    public boolean insertsAreDetected(int type) {
        return false;
    }

    /** A commit has nothing to do, and closes no result. */
    @Override
    public boolean supportsResultSetHoldability(int holdability) {
        return holdability == ResultSet.HOLD_CURSORS_OVER_COMMIT;
    }

    /** The columns that an index, or the key, finds rows by. */
    @Override
    public ResultSet getIndexInfo(String catalog, String schema, String table, boolean unique,
            boolean approximate) throws SQLException {
        String asked = isOurs(catalog, schema, table) ? table : "";
        PreparedStatement rows = ResultFactory.ours(PreparedStatement.class,
                connection.prepareStatement(IndexInfo.question(asked, unique)));
        rows.closeOnCompletion();
        return rows.executeQuery();
    }

    private static boolean isOurs(String catalog, String schema, String table) {
        return (catalog == null || catalog.isEmpty())
                && (schema == null || schema.equals(CacheSchema.NAME)) && table != null;
    }

    /** Entries are known by their keys. Avatica's protocol has no question for them. */
    @Override
    public ResultSet getPrimaryKeys(String catalog, String schema, String table)
            throws SQLException {
        String key = isOurs(catalog, schema, table) ? key(table) : null;
        PreparedStatement rows = ResultFactory.ours(PreparedStatement.class,
                connection.prepareStatement("select cast(null as varchar) as TABLE_CAT, "
                + "cast(? as varchar) as TABLE_SCHEM, cast(? as varchar) as TABLE_NAME, "
                + "cast(? as varchar) as COLUMN_NAME, cast(1 as smallint) as KEY_SEQ, "
                + "cast(null as varchar) as PK_NAME from (values (1)) as t(x) where "
                + (key == null ? "false" : "true")));
        rows.closeOnCompletion();
        rows.setString(1, CacheSchema.NAME);
        rows.setString(2, table);
        rows.setString(3, key);
        return rows.executeQuery();
    }

    /** The name of a table's key, the one column that is never null; null: there is no table. */
    private String key(String table) throws SQLException {
        try (ResultSet columns = getColumns(null, CacheSchema.NAME,
                PATTERN.matcher(table).replaceAll("\\\\$0"), null)) {
            while (columns.next()) {
                if (columns.getInt("NULLABLE") == columnNoNulls) {
                    return columns.getString("COLUMN_NAME");
                }
            }
        }
        return null;
    }
}
