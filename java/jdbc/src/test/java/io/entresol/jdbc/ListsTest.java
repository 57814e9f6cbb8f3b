package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.LocalDateTime;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Statements that list as many values as the program that makes them happens to have. */
class ListsTest {
    private static final int ROWS = 400;
    private static final int MANY = 1_200;

    @TempDir
    static Path folder;

    private static BothWays ways;

    @BeforeAll
    static void load() throws SQLException {
        ways = new BothWays(folder);
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.name = "name " + number;
            person.age = number;
            person.wealth = (long) number;
            person.remark = "remark " + number;
            person.born = number * 1000L;
            ways.grid.cache("people").put("k" + number, person);
        }
    }

    @AfterAll
    static void stop() throws SQLException {
        ways.close();
    }

    private static String listed(int count, IntFunction<String> each) {
        return IntStream.range(0, count).mapToObj(each).collect(Collectors.joining(", "));
    }

    private static String marks(int count) {
        return listed(count, number -> "?");
    }

    /** With a thousand of them it was refused as too long. */
    @Test
    void aListHasAsManyParametersAsThereAre() throws SQLException {
        for (Connection connection : ways.connections) {
            Object[] ages = IntStream.range(ROWS / 2, ROWS / 2 + MANY).boxed().toArray();
            Object[] texts = IntStream.range(ROWS / 2, ROWS / 2 + MANY)
                    .mapToObj(number -> "remark " + number).toArray();
            Object[] keys = IntStream.range(ROWS / 2, ROWS / 2 + MANY)
                    .mapToObj(number -> "k" + number).toArray();
            List<String> half = List.of(String.valueOf(ROWS / 2));
            String count = "select count(*) from people where ";
            assertEquals(half,
                    Answers.of(connection, count + "age in (" + marks(MANY) + ")", ages));
            assertEquals(half,
                    Answers.of(connection, count + "wealth not in (" + marks(MANY) + ")", ages));
            assertEquals(half,
                    Answers.of(connection, count + "remark in (" + marks(MANY) + ")", texts));
            assertEquals(half, Answers.of(connection, "select count(name) from people where "
                    + "_key in (" + marks(MANY) + ")", keys));
            ages[7] = null;
            assertEquals(List.of("0"),
                    Answers.of(connection, count + "age not in (" + marks(MANY) + ")", ages));
        }
    }

    @Test
    void aListHasExpressionsAndMomentsAmongItsConstants() throws SQLException {
        for (Connection connection : ways.connections) {
            assertEquals(List.of("5", "8", "10"), Answers.of(connection, "select age from people "
                    + "where age in (" + listed(200, number -> String.valueOf(1000 + number))
                    + ", ?, cast(? as integer) + 3, 10, null) order by age", 8, 2));
            assertEquals(List.of("7"), Answers.of(connection, "select age from people where "
                    + "born in (" + listed(40, number -> "timestamp '2000-01-01 00:00:" + (10 + number) + "'")
                    + ", ?)", LocalDateTime.parse("1970-01-01T00:00:07")));
        }
    }

    @Test
    void aListHasAsManyConstantsAsThereAre() throws SQLException {
        for (Connection connection : ways.connections) {
            assertEquals(List.of(String.valueOf(ROWS)), Answers.of(connection,
                    "select count(*) from people where age in (" + listed(10_000, String::valueOf) + ")"));
            assertEquals(List.of("49, 1"), Answers.of(connection, "select max(x), min(y) from "
                    + "(values " + listed(5_000, number -> "(" + number + ", 'k1')") + ") t(x, z) "
                    + "join (values (1), (2)) u(y) on u.y > 0 where x < 50"));
        }
    }

    @Test
    void rowsThatAreInsertedTogetherAreAsManyAsThereAre() throws SQLException {
        String sql = "insert into numbered (_key, age) values "
                + listed(MANY, number -> "(?, ?)");
        for (Connection connection : ways.connections) {
            try (PreparedStatement insert = connection.prepareStatement(sql)) {
                for (int number = 0; number < MANY; number++) {
                    insert.setString(2 * number + 1, "n" + number);
                    insert.setInt(2 * number + 2, number);
                }
                assertEquals(MANY, insert.executeLargeUpdate());
            }
            assertEquals(List.of(MANY + ", " + (MANY - 1)), Answers.of(connection,
                    "select count(*), max(age) from numbered"));
            assertEquals(MANY, Answers.change(connection, "delete from numbered"));
        }
    }

    @Test
    void keysThatAreListedAreLookedUp() throws SQLException {
        String plan = Answers.plan(ways.connections.get(0),
                "select remark from people where _key in ("
                + marks(25) + ")");
        assertTrue(plan.contains("ListedRows") && plan.contains("LookupJoin"), plan);
    }
}
