package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Methods of JDBC that tools, pools and frameworks use, in process and remotely. */
class JdbcTest {
    /** Methods that end what is asked, or that no interface of JDBC declares. */
    private static final Set<String> LEFT_OUT = Set.of("close", "abort", "wait", "notify",
            "notifyAll", "setNetworkTimeout", "unwrap");

    @TempDir
    static Path folder;

    private static BothWays ways;

    @BeforeAll
    static void start() throws SQLException {
        ways = new BothWays(folder);
        Answers.change(ways.connections.get(0),
                "insert into people (_key, name, age, born) values ('a', 'Ann', 1, "
                + "timestamp '2020-01-02 03:04:05.678')");
    }

    @AfterAll
    static void stop() throws SQLException {
        ways.close();
    }

    private static Object argument(Class<?> type, String text) {
        if (type == String.class) {
            return text;
        } else if (type == boolean.class) {
            return true;
        } else if (type == int.class) {
            return 1;
        } else if (type == long.class) {
            return 1L;
        }
        return type == Class.class ? Connection.class : null;
    }

    /** Asks all methods, and gives those whose answer is no answer of JDBC. */
    private static List<String> walked(Class<?> type, Object asked, String text,
            Class<? extends Exception> allowed) throws SQLException {
        List<String> wrong = new ArrayList<>();
        for (Method method : type.getMethods()) {
            if (LEFT_OUT.contains(method.getName()) || method.getDeclaringClass() == Object.class) {
                continue;
            }
            Object[] arguments = Arrays.stream(method.getParameterTypes())
                    .map(each -> argument(each, text)).toArray();
            try {
                Object answer = method.invoke(asked, arguments);
                if (answer instanceof ResultSet rows) {
                    Answers.of(rows);
                    rows.close();
                }
            } catch (InvocationTargetException failure) {
                if (!allowed.isInstance(failure.getCause())) {
                    wrong.add(method.getName() + ": " + failure.getCause());
                }
            } catch (IllegalAccessException | RuntimeException failure) {
                wrong.add(method.getName() + ": " + failure);
            }
        }
        return wrong;
    }

    /** Ten of them threw `RuntimeException: todo`. */
    @Test
    void everyMethodOfWhatIsToldAnswersOrSaysThatThereIsNone() throws SQLException {
        for (Connection connection : ways.connections) {
            for (String text : new String[] {null, "people"}) {
                assertEquals(List.of(), walked(DatabaseMetaData.class, connection.getMetaData(),
                        text, SQLFeatureNotSupportedException.class));
            }
            try (Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("select * from people")) {
                assertEquals(List.of(), walked(ResultSetMetaData.class, rows.getMetaData(), null,
                        SQLFeatureNotSupportedException.class));
            }
        }
    }

    @Test
    void everyMethodOfAConnectionAnswersOrThrowsWhatJdbcHas() throws SQLException {
        try (Connection own = ways.grid.connect(); Connection remote = ways.another()) {
            for (Connection connection : List.of(own, remote)) {
                assertEquals(List.of(), walked(Connection.class, connection,
                        "select name from people", SQLException.class));
            }
        }
    }

    @Test
    void indexesAreToldWithTheColumnsThatTheyFind() throws SQLException {
        for (Connection connection : ways.connections) {
            DatabaseMetaData meta = connection.getMetaData();
            try (ResultSet indexes = meta.getIndexInfo(null, "caches", "people", false, true)) {
                assertEquals("INDEX_NAME", indexes.getMetaData().getColumnLabel(6));
                assertEquals(13, indexes.getMetaData().getColumnCount());
                List<String> told = new ArrayList<>();
                while (indexes.next()) {
                    told.add(indexes.getString("COLUMN_NAME") + (indexes.getBoolean("NON_UNIQUE")
                            ? "" : " unique"));
                    assertEquals(DatabaseMetaData.tableIndexOther, indexes.getShort("TYPE"));
                }
                assertEquals(List.of("_key unique", "active", "address.city", "address.country",
                        "age", "born", "mood", "name", "score", "wealth"), told);
            }
            try (ResultSet unique = meta.getIndexInfo(null, null, "people", true, true)) {
                assertTrue(unique.next());
                assertEquals("_key", unique.getString("COLUMN_NAME"));
                assertEquals(false, unique.next());
            }
            for (String none : new String[] {"nothing", null, "people}"}) {
                try (ResultSet indexes = meta.getIndexInfo(null, "caches", none, false, true)) {
                    assertEquals(false, indexes.next());
                }
            }
        }
    }

    /** That of a moment was 3. */
    @Test
    void cellsAreNoLongerThanTheirDisplaySize() throws SQLException {
        for (Connection connection : ways.connections) {
            try (Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("select born, cast(born as date), "
                            + "cast(born as time), age, cast(-9223372036854775807 as bigint), "
                            + "-1.7976931348623157e308, cast(-1.25 as decimal(5, 2)), true, "
                            + "cast(-1.17549435e-38 as real) from people")) {
                assertTrue(rows.next());
                for (int column = 1; column <= rows.getMetaData().getColumnCount(); column++) {
                    int size = rows.getMetaData().getColumnDisplaySize(column);
                    String cell = rows.getString(column);
                    assertTrue(cell.length() <= size, "column " + column + ": " + cell + ", "
                            + size);
                }
                assertEquals(23, rows.getMetaData().getColumnDisplaySize(1));
            }
        }
    }

    /** Calcite knows them in capitals. */
    @Test
    void functionsOfJdbcAreInLettersOfEitherCase() throws SQLException {
        for (Connection connection : ways.connections) {
            assertEquals(List.of("ANN, ann, ANN, AN"), Answers.of(connection, "select "
                    + "{fn ucase(name)}, {fn lcase({fn UCASE(name)})}, {fn Ucase(name)}, "
                    + "{fn left({fn ucase(name)}, 2)} from people where {fn length(name)} = 3"));
        }
    }

    /** It was always refused, so that pools that commit by themselves gave no connection back. */
    @Test
    void aRollbackIsRefusedWhereSomethingWasChangedAndOnlyThere() throws SQLException {
        for (Connection connection : ways.connections) {
            try (PreparedStatement change = connection.prepareStatement(
                    "update people set remark = ?")) {
                change.setString(1, "changed");
                connection.rollback();
                connection.setAutoCommit(false);
                connection.rollback();
                assertEquals(List.of("Ann"), Answers.of(connection, "select name from people"));
                assertThrows(SQLException.class,
                        () -> Answers.of(connection, "select nothing from people"));
                connection.rollback();
                change.executeUpdate();
                String said = assertThrows(SQLFeatureNotSupportedException.class,
                        connection::rollback).getMessage();
                assertTrue(said.contains("stay"), said);
                connection.rollback();
                change.addBatch();
                change.executeBatch();
                connection.commit();
                connection.rollback();
                change.execute();
                connection.setAutoCommit(true);
                connection.rollback();
                change.executeUpdate();
                connection.rollback();
                assertThrows(SQLFeatureNotSupportedException.class,
                        () -> connection.rollback(null));
            }
        }
    }

    /** Remotely a mistake was told with the statement up to five times. */
    @Test
    void aMistakeIsToldOnceAndSaysWhatIsWrong() throws SQLException {
        Connection remote = ways.connections.get(1);
        for (String sql : List.of("select nothing from people", "selec name from people",
                "select cast('x' as integer) from people",
                "insert into people (_key, age) values ('a', 1)")) {
            try (Statement statement = remote.createStatement()) {
                String said = assertThrows(SQLException.class,
                        () -> statement.execute(sql)).getMessage();
                assertTrue(said.indexOf(sql) == said.lastIndexOf(sql), said);
                assertTrue(!said.contains("Exception"), said);
            }
        }
    }
}
