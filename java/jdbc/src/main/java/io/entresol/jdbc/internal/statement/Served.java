package io.entresol.jdbc.internal.statement;

import java.sql.Types;
import java.util.List;
import java.util.Set;
import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.avatica.ColumnMetaData;
import org.apache.calcite.avatica.ColumnMetaData.ArrayType;
import org.apache.calcite.avatica.ColumnMetaData.AvaticaType;
import org.apache.calcite.avatica.ColumnMetaData.Rep;
import org.apache.calcite.avatica.Meta;
import org.apache.calcite.jdbc.CalciteConnection;

/** The connections that Avatica's server holds for its clients, and uses as no program does. */
public final class Served {
    /** The property that they have. */
    public static final String MARK = "served";

    /** Types of the cells of an array that Avatica's server can send. */
    private static final Set<Integer> SENT = Set.of(Types.BOOLEAN, Types.TINYINT, Types.SMALLINT,
            Types.INTEGER, Types.BIGINT, Types.REAL, Types.FLOAT, Types.DOUBLE, Types.DECIMAL,
            Types.CHAR, Types.VARCHAR);

    private Served() {}

    static boolean is(AvaticaConnection connection) {
        return connection instanceof CalciteConnection here
                && here.getProperties().containsKey(MARK);
    }

    /**
     * Whether cells of a type are sent as texts, those that {@code getString} gives: Avatica's
     * server can send no maps, and rows, arrays, moments and bytes not inside of others.
     */
    static boolean isText(AvaticaType type) {
        return type.id == Types.STRUCT || type.getName().endsWith(" MAP")
                || type instanceof ArrayType cells && !SENT.contains(cells.getComponent().id);
    }

    /** What a client is told of a result. */
    static Meta.Signature told(Meta.Signature of) {
        List<ColumnMetaData> columns = of.columns.stream()
                .map(each -> isText(each.type) ? text(each) : each).toList();
        return new Meta.Signature(columns, of.sql, of.parameters, of.internalParameters,
                of.cursorFactory, of.statementType);
    }

    private static ColumnMetaData text(ColumnMetaData of) {
        return new ColumnMetaData(of.ordinal, of.autoIncrement, of.caseSensitive, of.searchable,
                of.currency, of.nullable, of.signed, of.displaySize, of.label, of.columnName,
                of.schemaName, of.precision, of.scale, of.tableName, of.catalogName,
                ColumnMetaData.scalar(Types.VARCHAR, "VARCHAR", Rep.STRING), of.readOnly,
                of.writable, of.definitelyWritable, String.class.getName());
    }
}
