package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Date;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Time;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Values of each type set to parameters of each type: compared with a column that the index
 * compares and with one that it does not, inserted, and written by an update, in process and
 * remotely, a value is the same cell everywhere, or a mistake everywhere. A day that was compared
 * with moments found nothing, as its number was taken for milliseconds.
 */
class ParameterTypeTest {
    /** What is refused. */
    private static final String NONE = null;
    private static final List<String> TYPES = List.of("truth", "integer", "bigint", "real", "wide",
            "text", "moment", "bytes");
    private static final String DAY = "1995-01-01";

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

    /**
     * A value, and the cells that it is.
     *
     * @param cells as SQL writes them, of columns in the order of {@link #TYPES}
     */
    private record Row(Object value, String... cells) {}

    private static List<Row> rows() {
        String midnight = "timestamp '1995-01-01 00:00:00'";
        String second = "timestamp '1995-01-01 00:00:01'";
        String written = "'1995-01-01 00:00:01.000'";
        LocalDateTime moment = LocalDateTime.parse("1995-01-01T00:00:01");
        Instant instant = moment.toInstant(ZoneOffset.UTC);
        String seven = "timestamp '1970-01-01 00:00:00.007'";
        List<Row> rows = new ArrayList<>();
        for (Object day : List.of(Date.valueOf(DAY), LocalDate.parse(DAY))) {
            rows.add(new Row(day, NONE, NONE, NONE, NONE, NONE, "'1995-01-01'", midnight, NONE));
        }
        for (Object time : List.of(Time.valueOf("03:04:05"), LocalTime.parse("03:04:05"))) {
            rows.add(new Row(time, NONE, NONE, NONE, NONE, NONE, "'03:04:05'", NONE, NONE));
        }
        for (Object each : List.of(moment, instant, Timestamp.from(instant),
                instant.atOffset(ZoneOffset.ofHours(7)), instant.atZone(ZoneOffset.UTC),
                new java.util.Date(instant.toEpochMilli()))) {
            rows.add(new Row(each, NONE, NONE, NONE, NONE, NONE, written, second, NONE));
        }
        for (Object number : List.of((byte) 7, (short) 7, 7, 7L, BigInteger.valueOf(7),
                new BigDecimal("7"))) {
            rows.add(new Row(number, "true", "7", "7", "7", "7", "'7'", seven, NONE));
        }
        for (Object number : List.of(7.0, 7.0f, new BigDecimal("7.0"))) {
            rows.add(new Row(number, "true", "7", "7", "7", "7", "'7.0'", seven, NONE));
        }
        rows.add(new Row(1.5, "true", NONE, NONE, "1.5", "1.5", "'1.5'", NONE, NONE));
        rows.add(new Row(5_000_000_000L, "true", NONE, "5000000000", "5e9", "5e9",
                "'5000000000'", "timestamp '1970-02-27 20:53:20'", NONE));
        rows.add(new Row(1e300, "true", NONE, NONE, NONE, "1e300", "'1.0E300'", NONE, NONE));
        rows.add(new Row(true, "true", "1", "1", "1", "1", "'true'", NONE, NONE));
        rows.add(new Row("7", NONE, "7", "7", "7", "7", "'7'", NONE, NONE));
        rows.add(new Row("true", "true", NONE, NONE, NONE, NONE, "'true'", NONE, NONE));
        rows.add(new Row(DAY, NONE, NONE, NONE, NONE, NONE, "'1995-01-01'", midnight, NONE));
        rows.add(new Row("none", NONE, NONE, NONE, NONE, NONE, "'none'", NONE, NONE));
        rows.add(new Row(new byte[] {1, 65}, NONE, NONE, NONE, NONE, NONE, NONE, NONE, "x'0141'"));
        return rows;
    }

    @Test
    void aValueIsOneCellWhateverTheStatementDoesWithIt() throws SQLException {
        for (Connection connection : ways.connections) {
            for (String type : TYPES) {
                List<String> columns = type.equals("bytes") ? List.of("plainBytes") : List.of(type,
                        "plain" + type.substring(0, 1).toUpperCase() + type.substring(1));
                for (String column : columns) {
                    check(connection, '"' + column + '"', TYPES.indexOf(type));
                }
            }
        }
    }

    private static void check(Connection connection, String column, int place)
            throws SQLException {
        try (PreparedStatement find = connection.prepareStatement("select _key from typed where "
                + column + " = ?");
                PreparedStatement insert = connection.prepareStatement(
                        "insert into typed (_key, " + column + ") values ('inserted', ?)");
                PreparedStatement update = connection.prepareStatement(
                        "update typed set " + column + " = ? where _key = 'updated'")) {
            for (Row row : rows()) {
                String told = column + " and " + row.value.getClass().getName() + " " + row.value
                        + ", " + connection;
                ways.grid.cache("typed").clear();
                String cell = row.cells[place];
                if (cell == null) {
                    for (PreparedStatement each : List.of(find, insert, update)) {
                        String said = assertThrows(SQLException.class, () -> {
                            each.setObject(1, row.value);
                            each.execute();
                        }, told).getMessage();
                        assertTrue(said.contains("parameter 1: expected"), said);
                    }
                    continue;
                }
                Answers.change(connection, "insert into typed (_key, " + column + ") values "
                        + "('there', " + cell + "), ('updated', null)");
                insert.setObject(1, row.value);
                assertEquals(1, insert.executeUpdate(), told);
                update.setObject(1, row.value);
                assertEquals(1, update.executeUpdate(), told);
                find.setObject(1, row.value);
                List<String> all = new ArrayList<>(Answers.of(find.executeQuery()));
                all.sort(null);
                assertEquals(List.of("inserted", "there", "updated"), all, told);
            }
        }
    }

    @Test
    void aDayIsTheBeginningOfItWhereMomentsAreOrdered() throws SQLException {
        for (Connection connection : ways.connections) {
            for (String column : List.of("moment", "plainMoment")) {
                ways.grid.cache("typed").clear();
                Answers.change(connection, "insert into typed (_key, " + column + ") values "
                        + "('a', timestamp '1994-12-31 23:59:59.999'), "
                        + "('b', timestamp '1995-01-01 00:00:00'), "
                        + "('c', timestamp '1995-01-01 00:00:01'), "
                        + "('d', timestamp '1995-01-02 00:00:00')");
                Date day = Date.valueOf(DAY);
                LocalDate next = LocalDate.parse("1995-01-02");
                assertEquals(List.of("b", "c"), Answers.of(connection, "select _key from typed "
                        + "where " + column + " >= ? and " + column + " < ? order by _key", day,
                        next));
                assertEquals(List.of("b", "c", "d"), Answers.of(connection, "select _key from "
                        + "typed where " + column + " between ? and ? order by _key", day, next));
                assertEquals(List.of("b", "d"), Answers.of(connection, "select _key from typed "
                        + "where " + column + " in (?, ?) order by _key", day, next));
                assertEquals(List.of("d"), Answers.of(connection, "select _key from typed "
                        + "where " + column + " - interval '1' day = ?", day));
            }
        }
    }

    @Test
    void aMomentIsADayWhereItIsTheBeginningOfOne() throws SQLException {
        for (Connection connection : ways.connections) {
            String sql = "select date '1995-01-01' = ?";
            assertEquals(List.of("true"), Answers.of(connection, sql,
                    LocalDateTime.parse("1995-01-01T00:00:00")));
            assertEquals(List.of("true"), Answers.of(connection, sql, Date.valueOf(DAY)));
            assertThrows(SQLException.class, () -> Answers.of(connection, sql,
                    LocalDateTime.parse("1995-01-01T00:00:01")));
            assertThrows(SQLException.class, () -> Answers.of(connection, sql,
                    LocalTime.parse("00:00:00")));
        }
    }
}
