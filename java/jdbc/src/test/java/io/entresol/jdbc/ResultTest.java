package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Time;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.List;
import org.apache.calcite.avatica.AvaticaConnection;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The promises of JDBC about results, in process and remotely. */
class ResultTest {
    private static final int ROWS = 10;

    @TempDir
    static Path folder;

    private static Grid grid;
    private static SqlServer server;
    private static List<Connection> connections;

    @BeforeAll
    static void start() throws SQLException {
        grid = new Grid(folder);
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.name = "name " + number;
            person.age = number;
            person.remark = "remark";
            grid.cache("people").put("k" + number, person);
        }
        server = SqlServer.start(grid.manager, 0);
        Driver.register("results", grid.manager);
        connections = new ArrayList<>();
        for (String url : urls()) {
            connections.add(DriverManager.getConnection(url));
        }
    }

    private static List<String> urls() {
        return List.of("jdbc:entresol:container=results",
                "jdbc:entresol:remote:http://127.0.0.1:" + server.port());
    }

    @AfterAll
    static void stop() throws SQLException {
        for (Connection each : connections) {
            each.close();
        }
        Driver.unregister("results");
        server.close();
        grid.close();
    }

    private static int rows(ResultSet result) throws SQLException {
        int rows = 0;
        while (result.next()) {
            rows++;
        }
        return rows;
    }

    /** Prepared ones gave all rows. */
    @Test
    void noStatementGivesMoreRowsThanItsMost() throws SQLException {
        for (Connection connection : connections) {
            try (PreparedStatement prepared =
                            connection.prepareStatement("select remark from people");
                    Statement plain = connection.createStatement()) {
                prepared.setMaxRows(3);
                plain.setMaxRows(3);
                assertEquals(3, rows(prepared.executeQuery()));
                assertEquals(3, rows(plain.executeQuery("select remark from people")));
                prepared.setMaxRows(0);
                assertEquals(ROWS, rows(prepared.executeQuery()));
                prepared.setMaxRows(1);
                ResultSet one = prepared.executeQuery();
                assertTrue(one.next());
                assertFalse(one.next());
                assertFalse(one.next());
            }
        }
    }

    /** 5,000,000,000 was 705,032,704. */
    @Test
    void aNumberThatIsTooLargeForWhatIsAskedForIsAMistake() throws SQLException {
        for (Connection connection : connections) {
            try (Statement statement = connection.createStatement();
                    ResultSet row = statement.executeQuery("select 5000000000 as big, 1e300, "
                            + "300, '12', 'abc', 2.9, cast(null as bigint), true, 70000, "
                            + "cast('NaN' as double)")) {
                assertTrue(row.next());
                String said = assertThrows(SQLException.class, () -> row.getInt("big"))
                        .getMessage();
                assertTrue(said.contains("5000000000"), said);
                assertEquals(5_000_000_000L, row.getLong("big"));
                assertThrows(SQLException.class, () -> row.getObject(1, Integer.class));
                assertThrows(SQLException.class, () -> row.getInt(2));
                assertThrows(SQLException.class, () -> row.getLong(2));
                assertThrows(SQLException.class, () -> row.getByte(3));
                assertEquals(300, row.getShort(3));
                assertEquals(12, row.getInt(4));
                assertThrows(SQLException.class, () -> row.getInt(5));
                assertEquals(2, row.getInt(6));
                assertEquals(0, row.getInt(7));
                assertTrue(row.wasNull());
                assertEquals(1, row.getInt(8));
                assertFalse(row.wasNull());
                assertThrows(SQLException.class, () -> row.getShort(9));
                assertThrows(SQLException.class, () -> row.getLong(10));
                assertThrows(SQLException.class, () -> row.getInt(11));
            }
        }
    }

    /** It was cancelled for good. */
    @Test
    void aStatementWhoseRunWasCancelledCanBeRunAgain() throws SQLException {
        for (Connection connection : connections) {
            try (PreparedStatement prepared =
                    connection.prepareStatement("select remark from people where age >= ?")) {
                prepared.setInt(1, 0);
                ResultSet cancelled = prepared.executeQuery();
                assertTrue(cancelled.next());
                prepared.cancel();
                assertThrows(SQLException.class, () -> rows(cancelled));
                assertEquals(ROWS, rows(prepared.executeQuery()));
            }
        }
    }

    /** What was told were mistakes inside of the driver and of the index. */
    @Test
    void aLimitThatIsNoNumberOfRowsIsToldAsSuch() throws SQLException {
        for (Connection connection : connections) {
            String sql = "select name from people order by name limit ? offset ?";
            assertEquals(2, Answers.of(connection, sql, 2, 1).size());
            assertEquals(2, Answers.of(connection, sql, 2L, 1L).size());
            for (Object[] wrong : new Object[][] {{-1, 0}, {1, -1}, {null, 0}, {1, null}}) {
                String said = assertThrows(SQLException.class,
                        () -> Answers.of(connection, sql, wrong)).getMessage();
                assertTrue(said.contains("expected a number of rows"), said);
            }
            assertEquals(List.of("name 0"), Answers.of(connection,
                    "select name from people order by name limit ?", "1"));
        }
    }

    /** Remote programs east and west of UTC read other moments than they had written. */
    @Test
    void momentsAreInUtcWhereverTheProgramIs() throws SQLException {
        for (Connection connection : connections) {
            assertEquals("UTC",
                    connection.unwrap(AvaticaConnection.class).config().timeZone());
            try (Statement statement = connection.createStatement();
                    ResultSet row = statement.executeQuery(
                            "select date '2020-01-02', time '03:04:05'")) {
                assertTrue(row.next());
                assertEquals(Date.valueOf("2020-01-02"), row.getDate(1));
                assertEquals(Date.valueOf("2020-01-02"), row.getObject(1));
                assertEquals(Time.valueOf("03:04:05"), row.getTime(2));
                assertEquals(Time.valueOf("03:04:05"), row.getObject(2));
            }
        }
    }

    /** Remotely the statement failed for what was wrong inside of the driver. */
    @Test
    void cellsThatAreMadeOfOthersCanBeReadAsTexts() throws SQLException {
        for (Connection connection : connections) {
            for (String[] each : new String[][] {{"row(1, 'a')", "{1, a}"},
                {"row(1, cast(null as integer), date '2020-01-02')", "{1, null, 2020-01-02}"},
                {"map['a', 1, 'b', 2]", "{a=1, b=2}"}, {"map['a', array[1]]", "{a=[1]}"},
                {"array[row(1, 'a')]", "[{1, a}]"},
                {"array[array[1, 2], array[3]]", "[[1, 2], [3]]"},
                {"array[date '2020-01-02']", "[2020-01-02]"}, {"array['a', 'b']", "[a, b]"}}) {
                try (PreparedStatement statement = connection.prepareStatement("select " + each[0]
                        + ", name from people where age = ?")) {
                    statement.setInt(1, 0);
                    try (ResultSet rows = statement.executeQuery()) {
                        assertTrue(rows.next());
                        assertEquals(each[1], rows.getString(1), each[0]);
                        assertEquals("name 0", rows.getString(2));
                    }
                }
            }
        }
    }

    /** Remotely days were others before 1582, bytes were letters, and arrays could not be read. */
    @Test
    void cellsAreTheSameInProcessAndRemotely() throws SQLException {
        for (Connection connection : connections) {
            try (Statement statement = connection.createStatement();
                    ResultSet row = statement.executeQuery("select date '1500-01-02' as past, "
                            + "timestamp '1500-01-02 03:04:05.678', x'01ff', array[4, 5], "
                            + "time '03:04:05.678', cast(null as varbinary)")) {
                assertTrue(row.next());
                assertEquals("1500-01-02", row.getString("past"));
                assertEquals(LocalDate.of(1500, 1, 2), row.getObject(1, LocalDate.class));
                assertEquals(Date.valueOf("1500-01-02"), row.getDate(1));
                assertEquals("1500-01-02 03:04:05.678", row.getString(2));
                assertEquals(LocalDateTime.parse("1500-01-02T03:04:05.678"),
                        row.getObject(2, LocalDateTime.class));
                assertEquals("01ff", row.getString(3));
                assertArrayEquals(new byte[] {1, -1}, row.getBytes(3));
                assertEquals("[4, 5]", row.getString(4));
                assertEquals(LocalTime.parse("03:04:05.678"), row.getObject(5, LocalTime.class));
                assertNull(row.getString(6));
            }
            assertEquals(List.of("true, true"), Answers.of(connection, "select date '1500-01-02' = "
                    + "cast(? as date), timestamp '1500-01-02 03:04:05.678' = cast(? as timestamp)",
                    LocalDate.of(1500, 1, 2), LocalDateTime.parse("1500-01-02T03:04:05.678")));
        }
    }
}
