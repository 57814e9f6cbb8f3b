package io.entresol.grid;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Rows of text under a heading, in columns; numbers stand at the right. */
public final class Table {
    private final List<String[]> rows = new ArrayList<>();

    /** An empty table of these columns. */
    public Table(String... heading) {
        rows.add(heading);
    }

    /** Adds a row of as many cells as there are columns. */
    public void add(Object... cells) {
        rows.add(Arrays.stream(cells).map(Table::text).toArray(String[]::new));
    }

    @Override
    public String toString() {
        int columns = rows.get(0).length;
        int[] widths = new int[columns];
        boolean[] numbers = new boolean[columns];
        Arrays.fill(numbers, rows.size() > 1);
        for (String[] row : rows) {
            for (int column = 0; column < columns; column++) {
                widths[column] = Math.max(widths[column], row[column].length());
                if (row != rows.get(0)) {
                    numbers[column] &= row[column].matches("[-+]?[0-9][0-9,.]*( %)?|-");
                }
            }
        }
        StringBuilder text = new StringBuilder();
        for (String[] row : rows) {
            StringBuilder line = new StringBuilder();
            for (int column = 0; column < columns; column++) {
                String padding = " ".repeat(widths[column] - row[column].length());
                line.append(numbers[column] ? padding + row[column] : row[column] + padding);
                line.append("  ");
            }
            text.append(line.toString().stripTrailing()).append(System.lineSeparator());
        }
        return text.toString();
    }

    private static String text(Object cell) {
        if (cell == null) {
            return "-";
        }
        if (cell instanceof Long || cell instanceof Integer) {
            return String.format(java.util.Locale.ROOT, "%,d", ((Number) cell).longValue());
        }
        return String.valueOf(cell);
    }
}
