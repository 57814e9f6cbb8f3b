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

/** The order of texts and the meaning of patterns, whether an index decides or not. */
class TextTest {
    /** A letter before U+FFFF, and one beyond it: as units of UTF-16 they change their places. */
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

    private static List<String> reversed(List<String> texts) {
        return texts.stream().sorted((one, other) ->
                Integer.compare(texts.indexOf(other), texts.indexOf(one))).toList();
    }

    /** An index sorted by code point, and what had none by the units of UTF-16. */
    @Test
    void textsAreSortedByCodePointWhoeverSortsThem() throws SQLException {
        for (String column : COLUMNS) {
            String from = " from people order by " + column;
            assertEquals(SORTED, query("select " + column + from));
            assertEquals(reversed(SORTED), query("select " + column + from + " desc"));
            assertEquals(SORTED.subList(2, 5),
                    query("select " + column + from + " limit 3 offset 2"));
            assertEquals(SORTED, query("select distinct " + column + from));
            assertEquals(SORTED, query("select " + column + " from (select * from people union all "
                    + "select * from people where age < 0) order by " + column));
            assertEquals(List.of("0", "1", "2", "3", "4", "5"),
                    query("select age" + from + ", age desc"));
            assertEquals(List.of("1, 0", "2, 1", "3, 2", "4, 3", "5, 4", "6, 5"),
                    query("select rank() over (order by " + column + "), age from people "
                            + "order by age"));
            assertEquals(List.of("5, 0", "5, 1", "5, 2", "5, 3", "5, 4", "5, 5"), query("select "
                    + "max(age) over (), count(*) over (order by " + column + " desc rows between "
                    + "1 following and unbounded following) from people order by age"));
            assertEquals(List.of(String.join(",", SORTED)), query("select string_agg(" + column
                    + ", ',' order by " + column + ") from people"));
        }
    }

    /** Rows that a statement lists were taken for sorted where their units were. */
    @Test
    void rowsThatAreListedAreSortedByCodePoint() throws SQLException {
        String rows = "(values ('" + FACE + "', 1), ('" + WIDE + "', 2)) t(x, y)";
        assertEquals(List.of(WIDE, FACE), query("select x from " + rows + " order by x"));
        assertEquals(List.of("2", "1"), query("select y from " + rows + " order by x"));
        assertEquals(List.of(WIDE), query("select x from " + rows + " order by x limit 1"));
        assertEquals(List.of(FACE, WIDE), query("select x from " + rows + " order by x desc"));
        assertEquals(List.of("4, 1", "2, 2"), query("select age, y from people join " + rows
                + " on x = name order by y"));
    }

    /** A letter beyond U+FFFF counted as two, and half of it could be cut off. */
    @Test
    void lettersAreCountedNotTheirUnits() throws SQLException {
        String text = FACE + "b" + WIDE + FACE;
        for (String from : List.of("(values ('" + text + "')) t(remark)",
                "(select cast('" + text + "' as varchar) as remark from people limit 1)")) {
            assertEquals(List.of("4, 4, 4"), query("select char_length(remark), "
                    + "character_length(remark), length(remark) from " + from));
            assertEquals(List.of(FACE + ", " + WIDE + FACE + ", b, , " + FACE), query("select "
                    + "substring(remark from 1 for 1), substring(remark from 3), "
                    + "substring(remark, 2, 1), substring(remark, 5), substring(remark, -1, 3) from "
                    + from));
            assertEquals(List.of("2, 3, 1, 0"), query("select position('b' in remark), "
                    + "strpos(remark, '" + WIDE + "'), position('" + FACE
                    + "' in remark), position('c' in remark) from " + from));
            assertEquals(List.of("xb" + WIDE + FACE + ", " + FACE + "xyz" + FACE),
                    query("select overlay(remark placing 'x' from 1), "
                            + "overlay(remark placing 'xyz' from 2 for 2) from " + from));
            assertEquals(List.of(FACE + "b, " + WIDE + FACE + ", " + FACE), query("select "
                    + "\"LEFT\"(remark, 2), \"RIGHT\"(remark, 2), cast(remark as varchar(1)) from "
                    + from));
        }
        assertEquals(List.of("2"), query("select age from people where char_length(remark) = 1 "
                + "and remark > '\u00e9' order by age limit 1"));
        assertEquals(List.of("8"), query("select sum(char_length(name)) from people"));
        assertTrue(assertThrows(SQLException.class,
                () -> query("select substring(name from 1 for -1) from people"))
                .getMessage().contains("expected 0 letters or more, found -1"));
    }

    @Test
    void textsAreComparedByCodePointWhoeverComparesThem() throws SQLException {
        for (String column : COLUMNS) {
            String ages = "select age from people where ";
            assertEquals(List.of("3", "4", "5"),
                    query(ages + column + " > '" + WIDE + "' order by age"));
            assertEquals(List.of("0", "1", "2", "3"),
                    query(ages + column + " < '" + FACE + "' order by age"));
            assertEquals(List.of("2", "3", "4"), query(ages + column + " between '" + WIDE
                    + "' and '" + FACE + "' order by age"));
            assertEquals(List.of("3"), query(ages + column + " > '" + WIDE + "' and " + column
                    + " < '" + FACE + "' order by age"));
            assertEquals(List.of("4", "5"), query(ages + column + " >= ? order by age", FACE));
            assertEquals(List.of("4", "5"), query(ages + "not " + column + " < '" + FACE
                    + "' order by age"));
            assertEquals(List.of(String.valueOf(SORTED.size() * (SORTED.size() - 1) / 2)),
                    query("select count(*) from people p join people q on p." + column + " < q."
                            + column));
            assertEquals(List.of("2"), query("select sum(case when " + column + " >= '" + FACE
                    + "' then 1 else 0 end) from people"));
        }
        assertEquals(List.of(FACE), query("select greatest('" + WIDE + "', '" + FACE + "')"));
        assertEquals(List.of("true"), query("select '" + WIDE + "' < '" + FACE + "'"));
    }

    @Test
    void theLeastAndTheGreatestTextAreThoseByCodePoint() throws SQLException {
        for (String column : List.of("name", "remark", "name || ''", "remark || ''")) {
            for (String rows : List.of("people", "people where age >= 0",
                    "people where remark <> 'x'")) {
                assertEquals(List.of("a, " + FACE + "b"), query("select min(" + column + "), max("
                        + column + ") from " + rows));
            }
            assertEquals(List.of(WIDE + ", " + FACE), query("select min(" + column + "), max("
                    + column + ") from people where age in (2, 4)"));
            assertEquals(List.of("0, " + WIDE + ", " + FACE, "1, " + WIDE + "b, " + FACE + "b"),
                    query("select mod(age, 2), min(" + column + "), max(" + column + ") "
                            + "from people where age > 1 group by mod(age, 2) order by 1"));
            assertEquals(List.of(FACE), query("select distinct max(" + column + ") over () "
                    + "from people where age in (2, 4)"));
        }
        assertEquals(List.of("null, null"),
                query("select min(remark), max(name) from people where age < 0"));
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
