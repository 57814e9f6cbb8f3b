package io.entresol.cassandra.node;

import java.util.ArrayList;
import java.util.List;

/** Rows of text under a heading, in columns; numbers stand at the right. Not thread-safe. */
final class Table {
    private final List<List<String>> rows = new ArrayList<>();

    Table(List<String> heading) {
        rows.add(heading);
    }

    /** Adds a row of as many cells as there are columns. */
    void add(List<String> cells) {
        rows.add(cells);
    }

    @Override
    public String toString() {
        int columns = rows.get(0).size();
        int[] widths = new int[columns];
        boolean[] numbers = new boolean[columns];
        for (int column = 0; column < columns; column++) {
            numbers[column] = rows.size() > 1;
            for (List<String> row : rows) {
                widths[column] = Math.max(widths[column], row.get(column).length());
                numbers[column] &= row == rows.get(0)
                        || row.get(column).matches("[-+]?[0-9][0-9.eE+-]*|null");
            }
        }
        StringBuilder text = new StringBuilder();
        for (List<String> row : rows) {
            StringBuilder line = new StringBuilder();
            for (int column = 0; column < columns; column++) {
                String padding = " ".repeat(widths[column] - row.get(column).length());
                line.append(numbers[column] ? padding + row.get(column)
                        : row.get(column) + padding).append("  ");
            }
            text.append(line.toString().stripTrailing()).append(System.lineSeparator());
        }
        return text.toString();
    }
}
