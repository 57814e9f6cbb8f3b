package io.entresol.cassandra.node;

import com.datastax.driver.core.CodecRegistry;
import com.datastax.driver.core.ColumnDefinitions;
import com.datastax.driver.core.DataType;
import com.datastax.driver.core.Row;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Rows of a result as people and programs read them. */
final class CqlValues {
    private CqlValues() {
    }

    /** The cells of a row, as CQL writes values; text without its quotes. */
    static List<String> cells(Row row) {
        List<String> cells = new ArrayList<>();
        ColumnDefinitions columns = row.getColumnDefinitions();
        for (int column = 0; column < columns.size(); column++) {
            cells.add(text(columns.getType(column), value(row, column)));
        }
        return cells;
    }

    /** A row as a line of JSON. */
    static String json(Row row) {
        Map<String, Object> values = new LinkedHashMap<>();
        ColumnDefinitions columns = row.getColumnDefinitions();
        for (int column = 0; column < columns.size(); column++) {
            values.put(columns.getName(column),
                    plain(columns.getType(column), value(row, column)));
        }
        return Status.json(values);
    }

    /** A collection without elements is none: the driver makes an empty one of it. */
    private static Object value(Row row, int column) {
        return row.isNull(column) ? null : row.getObject(column);
    }

    private static String text(DataType type, Object value) {
        if (value == null) {
            return "null";
        }
        if (value instanceof Date moment) {
            return moment.toInstant().toString();
        }
        String text = CodecRegistry.DEFAULT_INSTANCE.codecFor(type, value).format(value);
        boolean quoted = !type.isCollection() && text.length() > 1 && text.startsWith("'")
                && text.endsWith("'");
        return quoted ? text.substring(1, text.length() - 1).replace("''", "'") : text;
    }

    private static Object plain(DataType type, Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return value;
        }
        List<DataType> inner = type.getTypeArguments();
        if (value instanceof Collection<?> values) {
            return values.stream().map(one -> plain(inner.get(0), one)).toList();
        }
        if (value instanceof Map<?, ?> map) {
            Map<String, Object> values = new LinkedHashMap<>();
            map.forEach((key, one) -> values.put(text(inner.get(0), key),
                    plain(inner.get(1), one)));
            return values;
        }
        return text(type, value);
    }
}
