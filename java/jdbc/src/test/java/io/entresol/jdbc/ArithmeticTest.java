package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Numbers and moments keep their digits, in process and remotely. */
class ArithmeticTest {
    @TempDir
    static Path folder;

    private static BothWays ways;

    @BeforeAll
    static void load() throws SQLException {
        ways = new BothWays(folder);
        for (int number = 0; number < 3; number++) {
            Person person = new Person();
            person.age = number == 0 ? Integer.MIN_VALUE : Integer.MAX_VALUE;
            person.wealth = number == 0 ? Long.MIN_VALUE : Long.MAX_VALUE;
            person.born = 1_577_934_245_678L + number;
            person.remark = "2020-01-02 03:04:05." + (678 + number);
            ways.grid.cache("people").put("k" + number, person);
        }
    }

    @AfterAll
    static void stop() throws SQLException {
        ways.close();
    }

    private static void answers(String expected, String sql, Object... parameters)
            throws SQLException {
        for (Connection each : ways.connections) {
            assertEquals(List.of(expected), Answers.of(each, sql, parameters), sql);
        }
    }

    private static void refuses(String expected, String sql) {
        for (Connection each : ways.connections) {
            String said = assertThrows(SQLException.class, () -> Answers.of(each, sql))
                    .getMessage();
            assertTrue(said.contains(expected), sql + ": " + said);
        }
    }

    /** Nineteen were all. */
    @Test
    void decimalsHaveThirtyEightDigits() throws SQLException {
        answers("12345678901234567890123456789012345678",
                "select 12345678901234567890123456789012345678");
        answers("1234567890123456789012345678.0123456789",
                "select cast('1234567890123456789012345678.0123456789' as decimal(38, 10))");
        answers("24691357802469135780", "select cast(12345678901234567890 as decimal(20)) * 2");
        answers("55340232221128654839", "select sum(cast(x as decimal(30))) from "
                + "(values (18446744073709551613), (18446744073709551613), "
                + "(18446744073709551613)) t(x)");
        answers("9223372036854775806", "select sum(cast(wealth as decimal(19))) from people");
        answers("1.5E10", "select cast(15000000000 as double)");
        answers("12345678901234567890.5", "select cast(? as decimal(30, 1))",
                new BigDecimal("12345678901234567890.5"));
    }

    /** They had the digits behind the point that the numbers had, and no more than 16 in all. */
    @Test
    void meansAndQuotientsOfDecimalsKeepTheirFraction() throws SQLException {
        answers("1.333333333333", "select avg(cast(x as decimal(10, 2))) from "
                + "(values (1), (1), (2)) t(x)");
        answers("1.3333333333", "select avg(cast(x as decimal(10))) from "
                + "(values (1), (1), (2)) t(x)");
        answers("6148914691236517204.6666666666",
                "select avg(x) from (values (cast(9223372036854775807 as decimal(19))), "
                        + "(9223372036854775807), (0)) t(x)");
        answers("1.3333333333", "select distinct avg(x) over () from "
                + "(values (cast(1 as decimal(5))), (1), (2)) t(x)");
        answers("0.333333333333", "select 1.0 / 3");
        answers("3074457345618258602.333333",
                "select cast(9223372036854775807 as decimal(38)) / 3.0");
        for (Connection each : ways.connections) {
            try (Statement statement = each.createStatement(); ResultSet row = statement
                    .executeQuery("select avg(cast(x as decimal(10, 2))) from "
                            + "(values (1), (1), (2)) t(x)")) {
                assertTrue(row.next());
                assertEquals(new BigDecimal("1.333333333333"), row.getBigDecimal(1));
                assertEquals("1.333333333333", row.getString(1));
                assertEquals(12, row.getMetaData().getScale(1));
            }
        }
    }

    /** It was the least of its type, which is no such number. */
    @Test
    void theAbsoluteOfTheLeastNumberIsAMistake() throws SQLException {
        refuses("verflow", "select abs(age) from people");
        refuses("verflow", "select abs(wealth) from people where age < 0");
        refuses("verflow", "select sum(abs(wealth)) from people where age < 0");
        answers("2147483647, 9223372036854775807",
                "select distinct abs(age), abs(-wealth) from people where age > 0");
        answers("2147483648", "select abs(cast(age as bigint)) from people where age < 0");
        answers("2.5, 2.5", "select abs(-2.5), abs(-2.5e0)");
        refuses("verflow", "select abs(cast(age / 65536 as smallint)) from people where age < 0");
        refuses("verflow", "select abs(cast(age / 16777216 as tinyint)) from people where age < 0");
        answers("null, 5, 6", "select abs(cast(null as integer)), abs(cast(-5 as smallint)), "
                + "abs(cast(-6 as tinyint))");
    }

    /** What is computed of it was checked, it itself was not. */
    @Test
    void wholeNumbersInsideOfDecimalsThatOverflowAreMistakesToo() throws SQLException {
        refuses("overflow", "select (age + 1) * 1.5 from people where age > 0");
        refuses("overflow", "select cast(wealth + 1 as decimal(38)) from people where age > 0");
        refuses("overflow", "select sum((age * 2) / 1.5) from people where age > 0");
        answers("3221225470.5", "select distinct age * 1.5 from people where age > 0");
    }

    /** They were 0 and the greatest number of the type. */
    @Test
    void whatIsNoNumberOrInfiniteIsNoWholeNumberAndNoDecimal() throws SQLException {
        for (String number : List.of("NaN", "Infinity", "-Infinity")) {
            for (String type : List.of("integer", "bigint", "smallint", "decimal(10, 2)")) {
                refuses(number + " is cast to a type that has no such number",
                        "select cast(cast('" + number + "' as double) as " + type + ")");
            }
        }
        refuses("out of range", "select cast(1e10 as integer)");
        refuses("verflow", "select cast(cast(wealth as double) * 4 as bigint) from people");
        answers("2, 3000000000, null", "select cast(2.5e0 as integer), cast(3e9 as bigint), "
                + "cast(cast(null as double) as integer)");
    }

    /** It was told of code that a compiler does not take. */
    @Test
    void aNumberIsTrueUnlessItIsZero() throws SQLException {
        answers("true, false, true, false, true, null", "select cast(5 as boolean), "
                + "cast(0 as boolean), cast(-1.5 as boolean), cast(0e0 as boolean), "
                + "cast(cast(7 as bigint) as boolean), cast(cast(null as integer) as boolean)");
        answers("3", "select count(*) from people where cast(age as boolean)");
    }

    /** They were those of the whole second. */
    @Test
    void momentsKeepTheirMillisecondsAsTexts() throws SQLException {
        answers("2020-01-02 03:04:05.678", "select cast(cast('2020-01-02 03:04:05.678' as "
                + "timestamp) as varchar)");
        answers("2020-01-02 03:04:05.678",
                "select cast(born as varchar) from people where _key = 'k0'");
        answers("2020-01-02 03:04:05", "select cast(timestamp '2020-01-02 03:04:05' as varchar)");
        answers("3", "select count(*) from people where cast(remark as timestamp) = born "
                + "or cast(remark as timestamp(3)) = born");
        answers("k1", "select _key from people where born = cast(? as timestamp)",
                "2020-01-02 03:04:05.679");
        answers("k1", "select _key from people where cast(born as varchar) = ?",
                "2020-01-02 03:04:05.679");
        answers("k2", "select _key from people where born > '2020-01-02 03:04:05.679'");
        for (Connection each : ways.connections) {
            try (Statement statement = each.createStatement(); ResultSet row = statement
                    .executeQuery("select cast('2020-01-02 03:04:05.678' as timestamp)")) {
                assertTrue(row.next());
                assertEquals("2020-01-02 03:04:05.678", row.getString(1));
                assertEquals(678_000_000, row.getTimestamp(1).getNanos());
            }
        }
    }
}
