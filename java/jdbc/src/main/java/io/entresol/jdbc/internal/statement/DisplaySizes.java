package io.entresol.jdbc.internal.statement;

import java.sql.Types;
import org.apache.calcite.avatica.ColumnMetaData;
import org.apache.calcite.avatica.Meta;

/** The largest number of letters in the cells of each column, as {@code getString} gives them. */
final class DisplaySizes {
    private DisplaySizes() {}

    /** A result's columns with them: Calcite takes the digits of a number, or of a second. */
    static Meta.Signature in(Meta.Signature of) {
        return new Meta.Signature(of.columns.stream().map(DisplaySizes::sized).toList(), of.sql,
                of.parameters, of.internalParameters, of.cursorFactory, of.statementType);
    }

    private static ColumnMetaData sized(ColumnMetaData of) {
        int size = size(of);
        return size == of.displaySize ? of : new ColumnMetaData(of.ordinal, of.autoIncrement,
                of.caseSensitive, of.searchable, of.currency, of.nullable, of.signed, size,
                of.label, of.columnName, of.schemaName, of.precision, of.scale, of.tableName,
                of.catalogName, of.type, of.readOnly, of.writable, of.definitelyWritable,
                of.columnClassName);
    }

    private static int size(ColumnMetaData of) {
        return switch (of.type.id) {
            case Types.BOOLEAN -> "false".length();
            case Types.TINYINT -> "-128".length();
            case Types.SMALLINT -> "-32768".length();
            case Types.INTEGER -> String.valueOf(Integer.MIN_VALUE).length();
            case Types.BIGINT -> String.valueOf(Long.MIN_VALUE).length();
            case Types.REAL -> "-1.17549435E-38".length();
            case Types.FLOAT, Types.DOUBLE -> "-2.2250738585072014E-308".length();
            case Types.DECIMAL, Types.NUMERIC ->
                    of.precision + "-".length() + (of.scale > 0 ? "0.".length() : 0);
            case Types.DATE -> "2000-01-01".length();
            case Types.TIME -> "00:00:00".length() + fraction(of);
            case Types.TIMESTAMP -> "2000-01-01 00:00:00".length() + fraction(of);
            default -> of.displaySize;
        };
    }

    private static int fraction(ColumnMetaData of) {
        return of.precision > 0 ? ".".length() + of.precision : 0;
    }
}
