package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import org.infinispan.Cache;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Special floating-point numbers: two zeros, infinities, and NaN. */
class FloatTest {
    @TempDir
    static Path folder;

    private static Grid grid;
    private Connection connection;

    @BeforeAll
    static void start() {
        grid = new Grid(folder);
    }

    @AfterAll
    static void stop() {
        grid.close();
    }

    @BeforeEach
    void connect() throws SQLException {
        connection = grid.connect();
    }

    @AfterEach
    void empty() throws SQLException {
        connection.close();
        grid.cache("people").clear();
    }

    private List<String> query(String sql) throws SQLException {
        return Answers.of(connection, sql);
    }

    /** In the order in which they are read: by their names. */
    private static void fill(double... scores) {
        Cache<String, Person> people = grid.cache("people");
        for (int number = 0; number < scores.length; number++) {
            Person person = new Person();
            person.name = "n" + number;
            person.age = number;
            person.score = scores[number];
            person.remark = "r";
            people.put("k" + number, person);
        }
    }

    /** They were two groups and two values, and rows of one did not join those of the other. */
    @Test
    void bothZerosOfAColumnAreOneValue() throws SQLException {
        double[] scores = new double[300];
        for (int number = 2; number < scores.length; number++) {
            scores[number] = number;
        }
        scores[1] = -0.0;
        fill(scores);
        assertEquals(List.of("0.0, 2"), query("select score, count(*) from people "
                + "where score < 1 group by score"));
        assertEquals(List.of("0.0, 2"), query("select score, count(*) from people "
                + "where score < 1 and remark = 'r' group by score"));
        assertEquals(List.of("0.0"), query("select distinct score from people where score < 1"));
        assertEquals(List.of("299"), query("select count(distinct score) from people"));
        assertEquals(List.of("n0, n0", "n0, n1", "n1, n0", "n1, n1"),
                query("select p.name, q.name from people p join people q on p.score = q.score "
                        + "where p.age < 2 order by p.name, q.name"));
        String lookup = "select p.name from (values (0e0), (3e0)) t(x) join people p "
                + "on p.score = t.x order by p.name";
        assertTrue(Answers.plan(connection, lookup).contains("LookupJoin"));
        assertEquals(List.of("n0", "n1", "n3"), query(lookup));
    }

    /** An index puts -0.0 before 0.0, whatever was to sort rows of which both are the same. */
    @Test
    void whatSortsAfterAColumnSortsRowsOfBothZeros() throws SQLException {
        fill(0.0, 5, -0.0, -5, 0.0);
        assertEquals(List.of("n3", "n0", "n2", "n4"),
                query("select name from people order by score, name limit 4"));
        assertEquals(List.of("n1", "n4", "n2"),
                query("select name from people order by score desc, age desc limit 3"));
        assertEquals(List.of("-5.0", "0.0"),
                query("select score from people order by score limit 2"));
        assertEquals("index", Answers.reads(connection,
                "select score from people order by score limit 2"));
        assertEquals(List.of("1", "2", "2", "2", "5"),
                query("select rank() over (order by score) from people order by 1"));
    }

    /** Of infinities alone they were the greatest number that there is, or its negative. */
    @Test
    void theLeastAndTheGreatestAreAmongTheNumbers() throws SQLException {
        fill(Double.NEGATIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.POSITIVE_INFINITY);
        for (String score : List.of("score", "cast(score as real)", "score + 1")) {
            for (String rows : List.of("people", "(select * from people where remark = 'r') p")) {
                String from = " from " + rows + " where age ";
                assertEquals(List.of("-Infinity, -Infinity"), query("select max(" + score
                        + "), min(" + score + ")" + from + "< 2"));
                assertEquals(List.of("Infinity, Infinity"), query("select max(" + score
                        + "), min(" + score + ")" + from + "= 2"));
                assertEquals(List.of("-Infinity"), query("select max(" + score + ") over ()"
                        + from + "= 0"));
                assertEquals(List.of("null, null"), query("select max(" + score
                        + "), min(" + score + ")" + from + "> 9"));
            }
        }
    }

    /** Whether it was NaN told by which rows came first. */
    @Test
    void whatIsNoNumberIsTheGreatestOfSomeWhereverItStands() throws SQLException {
        fill(Double.NaN, 3, Double.NaN, -1);
        for (String rows : List.of("(0, 1)", "(1, 2)", "(0, 1, 2)")) {
            for (String more : List.of("", " and remark = 'r'")) {
                assertEquals(List.of("NaN, 3.0"), query("select max(score), min(score) from people "
                        + "where age in " + rows + more));
                assertEquals(List.of("NaN, 3.0"), query("select distinct max(score) over (), "
                        + "min(score) over () from people where age in " + rows + more));
            }
        }
        assertEquals(List.of("NaN, NaN"), query("select max(score), min(score) from people where "
                + "age in (0, 2) and remark = 'r'"));
        assertEquals(List.of("NaN, NaN", "NaN, 3.0", "NaN, NaN", "NaN, -1.0"),
                query("select max(score) over (order by age rows 1 preceding), max(score) over "
                        + "(order by age rows between current row and current row) from people "
                        + "order by age"));
    }
}
