package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The meaning of patterns, whether an index decides or not. */
class TextTest {
    /** A letter before U+FFFF, and one beyond it. */
    private static final String WIDE = "\uff21";
    private static final String FACE = "\ud83d\ude00";
    private static final List<String> SORTED = List.of("a", "\u00e9", WIDE, WIDE + "b", FACE,
            FACE + "b");
    /** One that an index has, and one that it has not. */
    private static final List<String> COLUMNS = List.of("name", "remark");

    @TempDir
    static Path folder;

    private static Grid grid;
    private static Connection connection;

    @BeforeAll
    static void load() throws SQLException {
        grid = new Grid(folder);
        for (int number = 0; number < SORTED.size(); number++) {
            Person person = new Person();
            person.name = SORTED.get(number);
            person.remark = SORTED.get(number);
            person.age = number;
            grid.cache("people").put("k" + number, person);
        }
        Person broken = new Person();
        broken.name = "one\ntwo";
        broken.remark = "one\ntwo";
        grid.cache("both").put("broken", broken);
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

    /** {@code _} was any letter but the end of a line, unless an index decided. */
    @Test
    void anUnderscoreIsAnyLetterAlsoTheEndOfALine() throws SQLException {
        for (String column : COLUMNS) {
            String count = "select count(*) from both_Person where " + column;
            assertEquals(List.of("1"), query(count + " like 'one_two'"));
            assertEquals(List.of("1"), query(count + " like '%e_t%'"));
            assertEquals(List.of("1"), query(count + " ilike 'ONE_T%'"));
            assertEquals(List.of("0"), query(count + " like 'one!_two' escape '!'"));
            assertEquals(List.of("0"), query(count + " not like 'one_two'"));
            assertEquals(List.of("0"), query(count + " like 'one__two'"));
        }
        assertEquals(List.of("true, false, true, true"), query("select '" + FACE + "' like '_', "
                + "'a.c' like 'a_' , 'a.c' like 'a.c', 'a%c' like 'a!%c' escape '!'"));
        assertEquals(List.of("false, true"),
                query("select 'abc' like 'a.c', '\\(x[' like '\\(_['"));
        assertTrue(assertThrows(SQLException.class,
                () -> query("select remark like 'a!b' escape '!' from people"))
                .getMessage().contains("pattern 'a!b'"));
    }

    /** An index, which knows no other case, decided it like {@code like}. */
    @Test
    void aPatternWithoutRegardToCaseMeansThatToAnIndexToo() throws SQLException {
        for (String column : COLUMNS) {
            assertEquals(List.of("2", "3"), query("select age from people where " + column
                    + " ilike '\uff41%' order by age"));
            assertEquals(List.of("0"), query("select age from people where " + column
                    + " ilike 'A%'"));
            assertEquals(List.of("1"), query("select age from people where " + column
                    + " ilike '\u00c9%'"));
            assertEquals(List.of("5"), query("select count(*) from people where " + column
                    + " not ilike 'A%'"));
        }
    }
}
