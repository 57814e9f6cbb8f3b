package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What JDBC promises of statements, in process and remotely. */
class StatementTest {
    @TempDir
    static Path folder;

    private static Grid grid;
    private static SqlServer server;
    private static List<Connection> connections;

    @BeforeAll
    static void start() throws SQLException {
        grid = new Grid(folder);
        server = SqlServer.start(grid.manager, 0);
        connections = new ArrayList<>();
        connections.add(grid.connect());
        connections.add(DriverManager.getConnection(
                "jdbc:entresol:remote:http://127.0.0.1:" + server.port()));
    }

    @AfterAll
    static void stop() throws SQLException {
        for (Connection each : connections) {
            each.close();
        }
        server.close();
        grid.close();
    }

    @AfterEach
    void empty() {
        grid.cache("people").clear();
    }

    /** It was a plain SQLException, or none of JDBC's, and nobody knew which rows were there. */
    @Test
    void aBatchThatFailsTellsWhatItsFirstChangesDid() throws SQLException {
        for (Connection connection : connections) {
            try (PreparedStatement insert = connection.prepareStatement(
                    "insert into people (_key, age) values (?, ?)")) {
                for (String key : List.of("a", "b", "a", "c")) {
                    insert.setString(1, key);
                    insert.setInt(2, 1);
                    insert.addBatch();
                }
                BatchUpdateException failed =
                        assertThrows(BatchUpdateException.class, insert::executeBatch);
                assertArrayEquals(new int[] {1, 1}, failed.getUpdateCounts());
                assertArrayEquals(new long[] {1, 1}, failed.getLargeUpdateCounts());
                assertTrue(failed.getMessage().contains("key a is there already"),
                        failed.getMessage());
                // Nothing of it is left for the next one.
                insert.setString(1, "d");
                insert.addBatch();
                assertArrayEquals(new int[] {1}, insert.executeBatch());
                assertArrayEquals(new int[0], insert.executeBatch());
            }
            assertEquals(List.of("a", "b", "d"),
                    Answers.of(connection, "select _key from people order by _key"));
            try (Statement changes = connection.createStatement()) {
                changes.addBatch("update people set age = 2");
                changes.addBatch("delete from people where _key = 'b'");
                changes.addBatch("update people set age = 'x'");
                changes.addBatch("delete from people");
                BatchUpdateException failed =
                        assertThrows(BatchUpdateException.class, changes::executeBatch);
                assertArrayEquals(new int[] {3, 1}, failed.getUpdateCounts());
                changes.addBatch("no sql");
                failed = assertThrows(BatchUpdateException.class, changes::executeBatch);
                assertArrayEquals(new int[0], failed.getUpdateCounts());
                changes.addBatch("delete from people");
                assertArrayEquals(new long[] {2}, changes.executeLargeBatch());
            }
        }
    }

    /** The next run was, although nothing ran. */
    @Test
    void aCancellationIsOfTheRunThatIsUnderWayAndOfNoLaterOne() throws SQLException {
        for (Connection connection : connections) {
            try (Statement direct = connection.createStatement();
                    PreparedStatement prepared = connection.prepareStatement(
                            "insert into people (_key) values (?)")) {
                direct.cancel();
                assertEquals(1, direct.executeUpdate("insert into people (_key) values ('a')"));
                direct.cancel();
                ResultSet one = direct.executeQuery("select _key, remark from people");
                assertTrue(one.next());
                direct.cancel();
                assertThrows(SQLException.class, one::next);
                ResultSet other = direct.executeQuery("select _key, remark from people");
                assertTrue(other.next());
                assertFalse(other.next());
                other.close();
                direct.cancel();
                assertTrue(direct.execute("select _key from people"));
                assertTrue(direct.getResultSet().next());
                prepared.cancel();
                prepared.setString(1, "b");
                assertEquals(1, prepared.executeUpdate());
                prepared.cancel();
                prepared.setString(1, "c");
                prepared.addBatch();
                assertArrayEquals(new int[] {1}, prepared.executeBatch());
            }
            assertEquals(3, Answers.change(connection, "delete from people"));
        }
    }

    /** The former run's result, once it was closed, took the cancellation of the next run away. */
    @Test
    void aResultThatIsClosedLateLeavesTheNextRunCancelled() throws SQLException {
        for (Connection connection : connections) {
            try (Statement statement = connection.createStatement()) {
                ResultSet former = statement.executeQuery("values (1), (2)");
                ResultSet current = statement.executeQuery("values (1), (2)");
                assertTrue(current.next());
                statement.cancel();
                former.close();
                assertThrows(SQLException.class, current::next);
            }
        }
    }

    @Test
    void resultsKnowTheStatementThatTheyAreOf() throws SQLException {
        for (Connection connection : connections) {
            try (Statement statement = connection.createStatement();
                    ResultSet result = statement.executeQuery("values 1")) {
                assertSame(statement, result.getStatement());
            }
        }
    }
}
