package io.entresol.jdbc;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.io.BaseEncoding;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** Prints rows for people or for programs. */
public final class Printer {
    /** How. */
    public enum Format { TABLE, JSON, CSV }

    /** Rows that a table's widths are taken from at a time; those after them get a head again. */
    private static final int PAGE = 500;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final PrintStream output;
    private final Format format;

    /** Prints there, as the format has it. */
    public Printer(PrintStream output, Format format) {
        this.output = output;
        this.format = format;
    }

    void changed(long rows) {
        if (format == Format.JSON) {
            output.println("{\"changed\":" + rows + "}");
        } else if (format == Format.TABLE) {
            output.println(rows + (rows == 1 ? " row changed" : " rows changed"));
        }
    }

    void print(ResultSet rows) throws SQLException {
        ResultSetMetaData meta = rows.getMetaData();
        List<String> names = new ArrayList<>();
        for (int column = 1; column <= meta.getColumnCount(); column++) {
            names.add(meta.getColumnLabel(column));
        }
        if (format == Format.CSV) {
            output.println(csv(names));
        }
        long count = 0;
        List<List<String>> page = new ArrayList<>();
        for (; rows.next(); count++) {
            List<Object> cells = new ArrayList<>();
            for (int column = 1; column <= names.size(); column++) {
                cells.add(rows.getObject(column));
            }
            switch (format) {
                case JSON -> output.println(json(names, cells));
                case CSV -> output.println(csv(texts(cells, "")));
                default -> page.add(texts(cells, "NULL"));
            }
            if (page.size() == PAGE) {
                table(names, page);
                page.clear();
            }
        }
        if (format == Format.TABLE) {
            if (!page.isEmpty() || count == 0) {
                table(names, page);
            }
            output.println(count + (count == 1 ? " row" : " rows"));
        }
    }

    private void table(List<String> names, List<List<String>> rows) {
        int[] widths = new int[names.size()];
        for (int column = 0; column < widths.length; column++) {
            widths[column] = names.get(column).length();
            for (List<String> row : rows) {
                widths[column] = Math.max(widths[column], row.get(column).length());
            }
        }
        line(names, widths);
        List<String> rules = new ArrayList<>();
        for (int width : widths) {
            rules.add("-".repeat(width));
        }
        line(rules, widths);
        rows.forEach(row -> line(row, widths));
    }

    private void line(List<String> cells, int[] widths) {
        StringBuilder line = new StringBuilder();
        for (int column = 0; column < widths.length; column++) {
            String cell = cells.get(column);
            line.append(column == 0 ? "" : "  ").append(cell)
                    .append(" ".repeat(widths[column] - cell.length()));
        }
        output.println(line.toString().stripTrailing());
    }

    private static List<String> texts(List<Object> cells, String missing) {
        return cells.stream().map(cell -> cell == null ? missing : text(cell)).toList();
    }

    private static String text(Object cell) {
        return cell instanceof byte[] bytes ? BaseEncoding.base16().encode(bytes)
                : cell.toString();
    }

    private static String csv(List<String> cells) {
        return String.join(",", cells.stream()
                .map(cell -> cell.matches("(?s).*[\",\\r\\n].*")
                        ? "\"" + cell.replace("\"", "\"\"") + "\"" : cell)
                .toList());
    }

    private static String json(List<String> names, List<Object> cells) {
        ObjectNode row = JSON.createObjectNode();
        for (int column = 0; column < names.size(); column++) {
            Object cell = cells.get(column);
            String name = names.get(column);
            if (cell instanceof Boolean truth) {
                row.put(name, truth);
            } else if (cell instanceof Number number && Double.isFinite(number.doubleValue())) {
                row.put(name, new BigDecimal(number.toString()));
            } else {
                row.put(name, cell == null ? null : text(cell));
            }
        }
        try {
            return JSON.writeValueAsString(row);
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException("a row cannot be written as JSON", impossible);
        }
    }
}
