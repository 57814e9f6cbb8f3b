package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.Date;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.List;
import org.apache.calcite.avatica.AvaticaConnection;
import java.util.TimeZone;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The promises of JDBC about statements, in process and remotely. */
class StatementTest {
    @TempDir
    static Path folder;

    private static BothWays ways;

    @BeforeAll
    static void start() throws SQLException {
        ways = new BothWays(folder);
    }

    @AfterAll
    static void stop() throws SQLException {
        ways.close();
    }

    @AfterEach
    void empty() {
        ways.grid.cache("people").clear();
    }

    /** It was a plain SQLException, or none of JDBC's, and nobody knew which rows were there. */
    @Test
    void aBatchThatFailsTellsWhatItsFirstChangesDid() throws SQLException {
        for (Connection connection : ways.connections) {
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
        for (Connection connection : ways.connections) {
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
        for (Connection connection : ways.connections) {
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
        for (Connection connection : ways.connections) {
            try (Statement statement = connection.createStatement();
                    ResultSet result = statement.executeQuery("values 1")) {
                assertSame(statement, result.getStatement());
            }
        }
    }

    @Test
    void statementsOfWhatAConnectionIsMadeOfRunToo() throws SQLException {
        for (Connection connection : ways.connections) {
            Connection inner = connection.unwrap(AvaticaConnection.class);
            assertEquals(List.of("5"), Answers.of(inner, "select * from (values (1), (5)) t(x) "
                    + "where x > cast(? as integer)", 3));
            assertEquals(1, Answers.change(inner, "insert into people (_key) values ('a')"));
            assertEquals(List.of("a"), Answers.of(inner, "select _key from people"));
            ways.grid.cache("people").clear();
        }
    }

    private interface Setting {
        void set(PreparedStatement statement) throws SQLException;
    }

    /** They were left as they had been in the run before, or unset. */
    @Test
    void aParameterIsWhatItIsSetToHoweverItIsSet() throws SQLException {
        byte[] bytes = {1, -1, 65};
        String text = "\u0436\ud83d\ude00";
        for (Connection connection : ways.connections) {
            try (PreparedStatement row = connection.prepareStatement(
                    "insert into people (_key, remark, payload, age) values (?, ?, ?, ?)")) {
                Setting[] texts = {each -> each.setCharacterStream(2, new StringReader(text)),
                    each -> each.setCharacterStream(2, new StringReader(text + "more"), 3),
                    each -> each.setClob(2, new StringReader(text)),
                    each -> each.setNString(2, text),
                    each -> each.setNCharacterStream(2, new StringReader(text)),
                    each -> each.setObject(2, text, Types.VARCHAR, 0),
                    each -> each.setObject(2, new StringReader(text))};
                Setting[] binaries = {
                    each -> each.setBinaryStream(3, new ByteArrayInputStream(bytes)),
                    each -> each.setBinaryStream(3, new ByteArrayInputStream(
                            new byte[] {1, -1, 65, 9}), 3),
                    each -> each.setBlob(3, new ByteArrayInputStream(bytes)),
                    each -> each.setObject(3, bytes, Types.BINARY),
                    each -> each.setObject(3, bytes, Types.BINARY, 0),
                    each -> each.setObject(3, new ByteArrayInputStream(bytes))};
                Setting[] numbers = {each -> each.setObject(4, BigInteger.TEN),
                    each -> each.setObject(4, 10.4, Types.DECIMAL, 0),
                    each -> each.setObject(4, "10", Types.INTEGER),
                    each -> each.setObject(4, 10L), each -> each.setObject(4, (short) 10),
                    each -> each.setObject(4, new BigDecimal("10.0"))};
                for (int number = 0; number < texts.length; number++) {
                    row.setString(1, "k" + number);
                    row.setNull(2, Types.VARCHAR);
                    row.setBytes(3, new byte[0]);
                    row.setInt(4, -1);
                    texts[number].set(row);
                    binaries[number % binaries.length].set(row);
                    numbers[number % numbers.length].set(row);
                    assertEquals(1, row.executeUpdate());
                    assertEquals(List.of(text + ", 01ff41, 10"), Answers.of(connection, "select "
                            + "remark, payload, age from people where _key = 'k" + number + "'"),
                            "way " + number);
                }
                row.setString(1, "null");
                row.setNull(2, Types.VARCHAR, "VARCHAR");
                row.setBinaryStream(3, null);
                row.setObject(4, null, Types.INTEGER, 0);
                row.executeUpdate();
                assertEquals(List.of("null, null, null"), Answers.of(connection,
                        "select remark, payload, age from people where _key = 'null'"));
                row.setAsciiStream(2, new ByteArrayInputStream(
                        "plain".getBytes(StandardCharsets.US_ASCII)));
                row.setString(1, "ascii");
                row.executeUpdate();
                assertEquals(List.of("plain"), Answers.of(connection,
                        "select remark from people where _key = 'ascii'"));
                String said = assertThrows(SQLException.class,
                        () -> row.setObject(2, Thread.currentThread())).getMessage();
                assertTrue(said.contains("parameter 2"), said);
                assertThrows(SQLException.class,
                        () -> row.setObject(2, "x", Types.TIMESTAMP_WITH_TIMEZONE));
                assertThrows(SQLException.class, () -> row.setObject(9, "x"));
            }
            ways.grid.cache("people").clear();
        }
    }

    @Test
    void momentsAndDaysAreTheSameInWhateverFormTheyAreGiven() throws SQLException {
        Instant moment = Instant.parse("2020-01-02T20:04:05.678Z");
        Object[] moments = {moment, Timestamp.from(moment), moment.atOffset(ZoneOffset.ofHours(7)),
            moment.atZone(TimeZone.getDefault().toZoneId()),
            LocalDateTime.ofInstant(moment, ZoneOffset.UTC), new java.util.Date(
                    moment.toEpochMilli())};
        for (Connection connection : ways.connections) {
            try (PreparedStatement insert = connection.prepareStatement(
                    "insert into people (_key, born) values (?, ?)")) {
                for (int number = 0; number < moments.length; number++) {
                    insert.setString(1, "k" + number);
                    insert.setObject(2, moments[number]);
                    insert.addBatch();
                }
                insert.executeBatch();
                insert.setString(1, "timestamp");
                insert.setTimestamp(2, Timestamp.from(moment));
                insert.executeUpdate();
                insert.setString(1, "typed");
                insert.setObject(2, LocalDateTime.ofInstant(moment, ZoneOffset.UTC),
                        Types.TIMESTAMP);
                insert.executeUpdate();
            }
            for (int number = 0; number < moments.length; number++) {
                assertEquals(moment.toEpochMilli(), ways.grid.<String, Person>cache("people")
                        .get("k" + number).born, moments[number].getClass().getName());
            }
            assertEquals(List.of(String.valueOf(moments.length + 2)), Answers.of(connection,
                    "select count(*) from people where born = ?", moment));
            LocalDate day = LocalDate.of(2020, 1, 2);
            LocalTime time = LocalTime.of(20, 4, 5);
            String same = "select date '2020-01-02' = cast(? as date), "
                    + "time '20:04:05' = cast(? as time)";
            assertEquals(List.of("true, true"), Answers.of(connection, same, day, time));
            assertEquals(List.of("true, true"), Answers.of(connection, same, Date.valueOf(day),
                    Time.valueOf(time)));
            ways.grid.cache("people").clear();
        }
    }

    /** Those after the first frame of the protocol were hours away where the server is. */
    @Test
    void momentsOfManyRowsAreThoseThatAreStored() throws SQLException {
        Instant moment = Instant.parse("2020-01-02T20:04:05.678Z");
        for (int number = 0; number < 250; number++) {
            Person person = new Person();
            person.born = moment.toEpochMilli();
            ways.grid.cache("people").put("k" + number, person);
        }
        for (Connection connection : ways.connections) {
            try (Statement statement = connection.createStatement(); ResultSet rows = statement
                    .executeQuery("select born, cast(born as date), cast(born as time) "
                            + "from people")) {
                for (int number = 0; number < 250; number++) {
                    assertTrue(rows.next());
                    String row = "row " + number;
                    assertEquals(moment, rows.getTimestamp(1).toInstant(), row);
                    assertEquals(moment, rows.getObject(1, Instant.class), row);
                    assertEquals(moment.atOffset(ZoneOffset.UTC),
                            rows.getObject(1, OffsetDateTime.class), row);
                    assertEquals(LocalDateTime.parse("2020-01-02T20:04:05.678"),
                            rows.getObject(1, LocalDateTime.class), row);
                    assertEquals(LocalDate.of(2020, 1, 2), rows.getObject(1, LocalDate.class), row);
                    assertEquals(Date.valueOf("2020-01-02"), rows.getDate(2), row);
                    assertEquals(LocalDate.of(2020, 1, 2), rows.getObject(2, LocalDate.class), row);
                    assertEquals(Time.valueOf("20:04:05").toLocalTime(),
                            rows.getTime(3).toLocalTime().withNano(0), row);
                    assertEquals(20, rows.getObject(3, LocalTime.class).getHour(), row);
                }
            }
        }
    }

    /** 5,000,000,000 was 705,032,704, and 1.5 was 1, unless an index compared. */
    @Test
    void aParameterThatDoesNotFitItsTypeIsAMistakeAndNoOtherNumber() throws SQLException {
        for (Connection connection : ways.connections) {
            Answers.change(connection, "insert into people (_key, age, active, born) values "
                    + "('a', 1, true, timestamp '2020-01-02 03:04:05.678')");
            for (String sql : List.of("select age + ? from people",
                    "select _key from people where age + 1 < ?",
                    "select _key from people where age < ?",
                    "select _key from people where cast(age as smallint) = ?",
                    "insert into people (_key, age) values ('b', ?)")) {
                for (Object wrong : new Object[] {5_000_000_000L, 1.5, Double.NaN,
                    new BigDecimal("1e20")}) {
                    String said = assertThrows(SQLException.class,
                            () -> Answers.of(connection, sql, wrong)).getMessage();
                    assertTrue(said.contains("parameter 1: expected a whole number"), said);
                }
            }
            assertEquals(List.of("5000000001"), Answers.of(connection,
                    "select age + cast(? as bigint) from people", 5_000_000_000L));
            // Texts are what the statement wants, whoever computes with them.
            assertEquals(List.of("3"), Answers.of(connection, "select age + ? from people", "2"));
            for (Object[] asked : new Object[][] {{"age + 1 = ?", "2"}, {"active = ?", "TRUE"},
                {"(active or age > 9) = ?", "true"}, {"born = ?", "2020-01-02 03:04:05.678"},
                {"cast(born as date) = ?", "2020-01-02"},
                {"cast(born as time) > ?", "03:04:05"}, {"age < cast(? as double)", 1.5}}) {
                assertEquals(List.of("a"), Answers.of(connection,
                        "select _key from people where " + asked[0], asked[1]), asked[0] + "");
            }
            try (PreparedStatement insert = connection.prepareStatement("insert into people "
                    + "(_key, age, wealth, score, active, born) values (?, ?, ?, ?, ?, ?)")) {
                insert.setString(1, "c");
                insert.setString(2, "7");
                insert.setString(3, " 8 ");
                insert.setString(4, "1.5");
                insert.setString(5, "true");
                insert.setString(6, "1970-01-01 00:00:01");
                insert.executeUpdate();
            }
            Person made = ways.grid.<String, Person>cache("people").get("c");
            assertEquals(7, made.age);
            assertEquals(8L, made.wealth);
            assertEquals(1.5, made.score);
            assertEquals(true, made.active);
            assertEquals(1_000L, made.born);
            ways.grid.cache("people").clear();
        }
    }

    /** Remotely there were no rows after the first hundred. */
    @Test
    void aFetchSizeOfZeroIsAsManyAsTheDriverLikes() throws SQLException {
        for (int number = 0; number < 250; number++) {
            ways.grid.cache("people").put("k" + number, new Person());
        }
        for (Connection connection : ways.connections) {
            try (Statement direct = connection.createStatement(); PreparedStatement prepared =
                    connection.prepareStatement("select _key, remark from people")) {
                for (int size : new int[] {0, 7, 0}) {
                    direct.setFetchSize(size);
                    prepared.setFetchSize(size);
                    assertEquals(250, Answers.of(
                            direct.executeQuery("select _key, remark from people")).size());
                    assertEquals(250, Answers.of(prepared.executeQuery()).size());
                }
            }
        }
    }

    /** A pool of connections rolled each back that it was given, which was refused. */
    @Test
    void aConnectionCommitsByItselfUntilItIsToldOtherwise() throws SQLException {
        for (Connection connection : ways.connections) {
            assertTrue(connection.getAutoCommit());
        }
    }

    @Test
    void aStatementThatIsTooLongIsRefusedAsSuch() {
        for (Connection connection : ways.connections) {
            String said = assertThrows(SQLException.class, () -> Answers.of(connection, "select "
                    + "max(" + "age + ".repeat(5_000) + "0) from people")).getMessage();
            assertTrue(said.contains("too long to be carried out"), said);
        }
    }
}
