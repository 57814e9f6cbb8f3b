package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** The SQL that people write, its results, and the errors for mistakes. */
class DialectTest {
    private static final int ROWS = 60;

    @TempDir
    static Path folder;

    private static Grid grid;
    private static Connection connection;

    @BeforeAll
    static void load() throws SQLException {
        grid = new Grid(folder);
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.name = "name " + number;
            person.age = number;
            person.wealth = (long) number;
            person.score = (double) Integer.MAX_VALUE;
            grid.cache("people").put("k" + number, person);
            Person rich = new Person();
            rich.age = Integer.MAX_VALUE;
            rich.wealth = Long.MAX_VALUE;
            grid.cache("both").put("k" + number, rich);
        }
        connection = grid.connect();
    }

    @AfterAll
    static void stop() throws SQLException {
        connection.close();
        grid.close();
    }

    private static List<String> query(String sql, Object... parameters) throws SQLException {
        return Answers.of(connection, sql, parameters);
    }

    private static String refusal(String sql) {
        return assertThrows(SQLException.class, () -> Answers.of(connection, sql)).getMessage();
    }

    /** They wrapped around: sixty of the greatest were -60. */
    @Test
    void sumsOfIntegersAreNotOnesThatWrapAround() throws SQLException {
        String greatest = String.valueOf(ROWS * (long) Integer.MAX_VALUE);
        assertEquals(List.of(greatest), query("select sum(age) from both_Person"));
        assertEquals(List.of("null, " + greatest),
                query("select name, sum(age) from both_Person group by name"));
        assertEquals(List.of(greatest), query("select sum(age + 0) from both_Person"));
        assertEquals(List.of(greatest), query("select sum(age) over () from both_Person limit 1"));
        assertEquals(List.of("2147483647"), query("select sum(distinct age) from both_Person"));
    }

    /** They wrapped around, without a word: sixty of the greatest were -60. */
    @Test
    void aSumOfBigintThatOverflowsIsAMistakeThatNamesItsColumn() throws SQLException {
        for (String sql : new String[] {"select sum(wealth) from both_Person",
            "select name, sum(wealth), count(*) from both_Person group by name",
            "select sum(wealth) from both_Person where upper(name) is null",
            "select sum(wealth) filter (where age > 0) from both_Person",
            "select sum(wealth), count(distinct age) from both_Person"}) {
            String said = refusal(sql);
            assertTrue(said.contains("sum(cast(\"wealth\" as decimal(19)))"), sql + ": " + said);
        }
        String said = refusal("select sum(wealth - 1) from both_Person");
        assertTrue(said.contains("a sum of an expression is beyond BIGINT"), said);
        String greatest = BigDecimal.valueOf(Long.MAX_VALUE).multiply(BigDecimal.valueOf(ROWS)) + "";
        assertEquals(List.of(greatest),
                query("select sum(cast(wealth as decimal(19))) from both_Person"));
        assertEquals(List.of(Long.MAX_VALUE + ""),
                query("select sum(distinct wealth) from both_Person"));
        assertEquals(List.of("null, 0, 0"), query("select sum(wealth), count(wealth), "
                + "coalesce(sum(wealth), 0) from people where age < 0"));
        assertEquals(List.of(ROWS * (ROWS - 1) / 2 + ""), query("select sum(wealth) from people"));
    }

    /** They wrapped around after all other sums were checked. */
    @Test
    void aSumOfBigintOverAWindowThatOverflowsIsTheSameMistake() throws SQLException {
        for (String sql : new String[] {"select sum(wealth) over () from both_Person",
            "select sum(wealth) over (order by _key) from both_Person",
            "select age, sum(wealth) over (partition by name order by age rows between 1 preceding "
                    + "and current row), count(*) over () from both_Person",
            "select avg(wealth) over (order by _key) from both_Person"}) {
            String said = refusal(sql);
            assertTrue(said.contains("sum(cast(\"wealth\" as decimal(19)))"), sql + ": " + said);
        }
        String said = refusal("select sum(wealth - 1) over () from both_Person");
        assertTrue(said.contains("a sum of an expression is beyond BIGINT"), said);
        said = refusal("select sum(9223372036854775807) over () from both_Person");
        assertTrue(said.contains("a sum of an expression is beyond BIGINT"), said);
        // Of each row and the one before it, no more.
        assertEquals(List.of("57, 113", "58, 115", "59, 117"), query("select age, sum(wealth) "
                + "over (order by age rows 1 preceding) s from people order by age offset 57"));
        assertEquals(List.of("null, 0, 0"), query("select sum(case when age > 99 then wealth end) "
                + "over (), count(case when age > 99 then wealth end) over (), "
                + "sum(case when age > 99 then wealth else 0 end) over () from people limit 1"));
        assertEquals(List.of("1770, 29.5"), query("select sum(wealth) over (), "
                + "avg(wealth) over () from people limit 1"));
        assertEquals(List.of(Long.MAX_VALUE + ""), query("select sum(wealth) over "
                + "(order by _key rows between current row and current row) from both_Person "
                + "limit 1"));
    }

    /** 29 and 1374 they were. */
    @Test
    void meansAndDeviationsOfWholeNumbersHaveFractions() throws SQLException {
        assertEquals(List.of("29.5, 29.5"), query("select avg(age), avg(wealth) from people"));
        assertEquals(List.of("2.147483647E9"), query("select avg(age) from both_Person"));
        double variance = (ROWS * ROWS - 1) / 12.0;
        List<String> found = query("select var_pop(age) from people");
        assertEquals(variance, Double.parseDouble(found.get(0)), 1e-9);
        found = query("select stddev_pop(wealth) from people where age >= 0");
        assertEquals(Math.sqrt(variance), Double.parseDouble(found.get(0)), 1e-9);
    }

    @Test
    void arithmeticThatOverflowsIsAMistakeAndNoOtherNumber() throws SQLException {
        assertTrue(refusal("select age + 1 from both_Person").contains("overflow"));
        assertTrue(refusal("select age * 2 from both_Person").contains("overflow"));
        assertTrue(refusal("select -age - 2 from both_Person").contains("overflow"));
        assertEquals(List.of("2147483648"),
                query("select cast(age as bigint) + 1 from both_Person limit 1"));
        assertEquals(List.of("17, 2, 85.5"),
                query("select age % 20, age / 20, age * 1.5 from people where age = 57"));
        assertEquals(List.of("59"), query("select count(*) from people where age != 3"));
    }

    /** It was taken for a promise that there is no null. */
    @Test
    void aDefaultOfLeadAndLagStandsForRowsThatAreNotThereAndNotForNulls() throws SQLException {
        String rows = "(values (1, 10), (2, cast(null as integer)), (3, 30)) t(k, x)";
        assertEquals(List.of("1, null, -1", "2, 30, 10", "3, -1, null"), query("select k, "
                + "lead(x, 1, -1) over (order by k), lag(x, 1, -1) over (order by k) from " + rows
                + " order by k"));
        assertEquals(List.of("1, -1", "2, -1", "3, 10"), query("select k, lag(x, 2, -1) "
                + "over (order by k) from " + rows + " order by k"));
        assertEquals(List.of("1, null", "2, 10", "3, null"), query("select k, lag(x) "
                + "over (order by k) from " + rows + " order by k"));
        assertEquals(List.of("2"), query("select k from (select k, lead(x, 1, 0) over (order by k) "
                + "l from " + rows + ") where l is not null and l > 0"));
        assertEquals(List.of("null", "x"), query("select lag(remark, 1, 'x') over (order by age "
                + "desc) from people where age < 2 order by age"));
    }

    @Test
    void functionsThatOtherDatabasesHaveAreThere() throws SQLException {
        assertEquals(List.of("name 7!, 6, 7"), query("select concat(name, '!'), length(name), "
                + "greatest(age, 2) from people where age = 7"));
        assertEquals(List.of("name 8"),
                query("select name from people where name ilike 'NAME 8'"));
        assertEquals(List.of("name 1,name 2"), query("select string_agg(name, ',' order by name) "
                + "from people where age in (1, 2)"));
    }

    @Test
    void textsHaveLettersOfAllAlphabets() throws SQLException {
        assertEquals(1, Answers.change(connection, "insert into people (_key, name) "
                + "values ('\u6f22', '\u0436 \ud83d\ude00')"));
        assertEquals(List.of("\u6f22"), query("select _key from people where name = "
                + "'\u0436 \ud83d\ude00'"));
        assertEquals(List.of("\u0416\u00e9"), query("select upper('\u0436') || '\u00e9'"));
        assertEquals(1, Answers.change(connection, "delete from people where _key = '\u6f22'"));
    }

    /** 'k1' became 'k1   ' beside 'other', and was no key that there is. */
    @Test
    void textsOfSeveralLengthsAreNotPaddedToTheLongest() throws SQLException {
        for (String texts : new String[] {"(values ('k1'), ('other'))",
            "(select 'k1' as x union all select 'other')"}) {
            assertEquals(List.of("1"), query("select age from " + texts
                    + " t(x) join people p on p._key = t.x"));
            assertEquals(List.of("1"), query("select age from people where _key in "
                    + "(select x from " + texts + " t(x))"));
        }
        assertEquals(List.of("<a>", "<bcd>"), query("select '<' || case when age = 3 then 'a' "
                + "else 'bcd' end || '>' from people where age in (3, 4) order by age"));
        assertEquals(List.of("a|"), query("select coalesce('a', 'bcd') || '|'"));
    }

    @Test
    void groupsMayBeNumberedAndLimitsHaveAnOffsetBefore() throws SQLException {
        assertEquals(List.of("0, 1"), query("select age, count(*) from people group by 1 "
                + "order by 1 limit 1"));
        assertEquals(List.of("5", "6"), query("select age from people order by age limit 5, 2"));
    }

    @Test
    void parametersThatAreTextsAreNumbersWhereNumbersAreWanted() throws SQLException {
        assertEquals(List.of("name 7"), query("select name from people where age = ?", "7"));
        assertEquals(List.of("60"), query("select count(*) from people where score > ?", " 1e3"));
        assertTrue(assertThrows(SQLException.class,
                () -> query("select name from people where age = ?", "seven")).getMessage()
                .contains("parameter 1: expected a value of type INTEGER, found `seven`"));
    }

    @Test
    void mistakesInConstantsAndTextsThatAreNoNumbersAreToldAsMistakes() {
        assertTrue(refusal("select 1 / 0").contains("/ by zero"));
        assertTrue(refusal("select cast('x' as integer)").contains("is no number"));
        assertTrue(refusal("select name from people where name = 5").contains("is no number"));
        assertTrue(refusal("select cast(name as integer) from people").contains("is no number"));
    }

    @Test
    void cellsAreOfTheTypeThatIsAskedFor() throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet row =
                statement.executeQuery("select age, wealth, remark from people where age = 7")) {
            assertTrue(row.next());
            assertEquals(7, row.getObject("age", Integer.class));
            assertEquals(7L, row.getObject(1, Long.class));
            assertEquals("7", row.getObject(2, String.class));
            assertEquals(new BigDecimal(7), row.getObject(2, BigDecimal.class));
            assertNull(row.getObject(3, String.class));
            assertTrue(assertThrows(SQLException.class, () -> row.getObject(1, Thread.class))
                    .getMessage().contains("java.lang.Thread"));
        }
    }

    /** It was carried out as an insert, which refuses keys that are there. */
    @Test
    void anUpsertIsRefusedAsWhatItIs() throws SQLException {
        for (String before : new String[] {"", " /* all\n */ -- of them\n "}) {
            String said = refusal(before + "Upsert into people (_key, name) values ('k1', 'x')");
            assertTrue(said.contains("UPSERT is not there; there are INSERT, UPDATE"), said);
        }
        assertEquals(List.of("0"), query("select count(*) from people where name = 'upsert'"));
    }

    @Test
    void aSemicolonAtTheEndIsNoMistake() throws SQLException {
        assertEquals(List.of("60"), query("select count(*) from people ; "));
        assertEquals(List.of("1"), query("select count(*) from people where age = ?;", 3));
        assertEquals(List.of("a;"), query("select 'a;' from people limit 1;"));
    }

    @Test
    void whoPreparesAStatementIsToldWhatIsWrongInProcessAndRemotely() throws Exception {
        String sql = "select nam from people where age = ?";
        try (SqlServer server = SqlServer.start(grid.manager, 0);
                Connection remote = DriverManager.getConnection(
                        "jdbc:entresol:remote:http://127.0.0.1:" + server.port())) {
            for (Connection each : List.of(connection, remote)) {
                String said = assertThrows(SQLException.class, () -> each.prepareStatement(sql))
                        .getMessage();
                assertTrue(said.contains("line 1, column 8: there is no column `nam`"), said);
            }
        }
    }

    @Test
    void aMistakeIsToldWithoutEveryWordThatThereIs() {
        String said = refusal("select name from people where");
        assertTrue(said.contains("Encountered \"<EOF>\" at line 1, column 29."), said);
        assertTrue(said.length() < 200, said);
        said = refusal("select address.city from people");
        assertTrue(said.contains("are quoted: \"address.city\", \"address.street\""), said);
    }

    /** Remote ones did, whatever timeout they were given: the server is not told of that. */
    @Test
    void aConnectionsTimeoutIsThatOfItsStatementsRemotelyToo() throws Exception {
        String slow = "select count(*) from people a, people b, people c, people d, people e, "
                + "people f where a.age + b.age + c.age + d.age + e.age + f.age < 0";
        try (SqlServer server = SqlServer.start(grid.manager, 0)) {
            String remote = "jdbc:entresol:remote:http://127.0.0.1:" + server.port();
            try (Connection limited = DriverManager.getConnection(remote + ";timeout=1");
                    PreparedStatement prepared = limited.prepareStatement(slow)) {
                for (Executable each : new Executable[] {prepared::executeQuery,
                    () -> Answers.of(limited, slow)}) {
                    String said = assertThrows(SQLException.class, each).getMessage();
                    assertTrue(said.contains("longer than its timeout"), said);
                }
                assertEquals(List.of("60"), Answers.of(limited, "select count(*) from people"));
            }
            String said = assertThrows(SQLException.class, () -> DriverManager.getConnection(
                    remote + ";timeout=soon")).getMessage();
            assertTrue(said.contains("timeout=soon: expected seconds"), said);
        }
    }

    /** A statement went on for ever. */
    @Test
    void aStatementEndsAtItsTimeout() throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            String said = assertThrows(SQLException.class, () -> statement.executeQuery(
                    "select count(*) from people a, people b, people c, people d, people e, "
                    + "people f where a.age + b.age + c.age + d.age + e.age + f.age < 0").next())
                    .getMessage();
            assertTrue(said.contains("longer than its timeout"), said);
        }
    }
}
