package io.entresol.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import org.apache.calcite.avatica.util.ByteString;

/** Statements, and their answers as text. */
final class Answers {
    private Answers() {}

    /** The rows of a query, the cells of each with commas between. */
    static List<String> of(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(sql)) {
            return of(rows);
        }
    }

    /** The same, with parameters, which may be null. */
    static List<String> of(Connection connection, String sql, Object... parameters)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int number = 0; number < parameters.length; number++) {
                statement.setObject(number + 1, parameters[number]);
            }
            try (ResultSet rows = statement.executeQuery()) {
                return of(rows);
            }
        }
    }

    static List<String> of(ResultSet rows) throws SQLException {
        List<String> all = new ArrayList<>();
        while (rows.next()) {
            List<String> cells = new ArrayList<>();
            for (int column = 1; column <= rows.getMetaData().getColumnCount(); column++) {
                Object cell = rows.getObject(column);
                cells.add(cell instanceof byte[] bytes ? new ByteString(bytes).toString()
                        : String.valueOf(cell));
            }
            all.add(String.join(", ", cells));
        }
        return all;
    }

    static long change(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return statement.executeLargeUpdate(sql);
        }
    }

    /** The plan of a query as one line. */
    static String plan(Connection connection, String sql) throws SQLException {
        return String.join("\n", of(connection, "explain plan for " + sql));
    }

    /** How the plan says that a cache is read. */
    static String reads(Connection connection, String sql) throws SQLException {
        String plan = plan(connection, sql);
        int start = plan.indexOf("reads=[") + 7;
        return plan.substring(start, plan.indexOf(']', start));
    }
}
