package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Parts of a statement that move into the reading of a cache answer as SQL requires. */
class PushDownTest {
    private static final int ROWS = 10;

    @TempDir
    static Path folder;

    private static Grid grid;
    private Connection connection;

    /** Names go down as ages go up; the last of each is missing. */
    @BeforeAll
    static void load() {
        grid = new Grid(folder);
        for (int number = 0; number <= ROWS; number++) {
            Person person = new Person();
            person.name = number == ROWS ? null : "name " + (ROWS - 1 - number);
            person.age = number == ROWS ? null : number;
            person.remark = "remark " + number % 3;
            grid.cache("people").put("k" + number, person);
        }
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
    void disconnect() throws SQLException {
        connection.close();
        grid.cache("both").clear();
    }

    private List<String> query(String sql, Object... parameters) throws SQLException {
        return Answers.of(connection, sql, parameters);
    }

    /** One of them emptied the answer, wherever it was compared. */
    @Test
    void aParameterThatIsNullLeavesOutTheAlternativeThatComparesWithItAndNoOther()
            throws SQLException {
        String either = "select _key from people where name = ? or age = ?";
        assertTrue(Answers.plan(connection, either).contains("p.name = ?0 or p.age = ?1"));
        assertEquals(List.of("k5"), query(either, null, 5));
        assertEquals(List.of("k4"), query(either, "name 5", null));
        assertEquals(List.of(), query(either, null, null));
        assertEquals(List.of("k7"), query("select _key from people where age in (?, ?, ?)",
                null, 7, null));
        assertEquals(List.of("3"), query("select count(*) from people "
                + "where (name > ? and age = 1) or age < ? or age > ?", null, 3, null));
        assertEquals(List.of("1"), query("select count(*) from people where age is null "
                + "or age <> ?", (Object) null));
        assertEquals(List.of(), query("select _key from people where age <> ? and name is not null",
                (Object) null));
    }

    /** The order of the scan was believed to be that of whatever columns were left of it. */
    @Test
    void aLimitInOneOrderUnderAnotherOrderComesInTheOther() throws SQLException {
        List<String> names = List.of("name 5", "name 6", "name 7", "name 8", "name 9");
        String youngest = "(select age, name from people order by age limit 5)";
        assertEquals(names, query("select name from " + youngest + " order by name"));
        assertEquals(List.of("name 5, 4", "name 6, 3", "name 7, 2", "name 8, 1", "name 9, 0"),
                query("select name, age from " + youngest + " order by name"));
        assertEquals(List.of("name 5, 1", "name 6, 1", "name 7, 1", "name 8, 1", "name 9, 1"),
                query("select name, count(*) from " + youngest + " group by name order by name"));
        assertEquals(List.of("5"), query("select count(name) from " + youngest));
    }

    /** What the index has nothing of showed the default where the entry was read. */
    @Test
    void aDefaultInsideOfAMessageThatIsNotThereIsNoneWhereverItIsReadFrom() throws SQLException {
        Person home = new Person();
        home.name = "home";
        home.address = new Person.Address();
        home.address.city = "Ulm";
        home.address.country = "AT";
        grid.cache("people").put("home", home);
        String country = "select \"address.country\" from people where ";
        for (String key : List.of("home", "k4")) {
            String expected = key.equals("home") ? "AT" : "null";
            String name = key.equals("home") ? "home" : "name 5";
            assertEquals(List.of(expected), query(country + "_key = '" + key + "'"));
            assertEquals(List.of(expected), query(country + "name = '" + name + "'"));
        }
        assertEquals(List.of("k4"), query("select _key from people "
                + "where \"address.country\" is null and name = 'name 5'"));
        assertEquals(List.of(), query("select _key from people "
                + "where \"address.country\" = 'DE' and _key = 'k4'"));
        assertEquals(List.of(), query("select _key from people "
                + "where \"address.country\" = 'DE' and name = 'name 5'"));
        grid.cache("people").remove("home");
    }

    /** It failed while it was planned. */
    @Test
    void aLimitBeyondAnIntegerIsOneThatLeavesNothingOut() throws SQLException {
        for (String most : List.of("3000000000", "9223372036854775807")) {
            assertEquals(ROWS + 1,
                    query("select name from people order by age limit " + most).size());
            assertEquals(ROWS - 2, query("select name from people order by age limit " + most
                    + " offset 3").size());
        }
        assertEquals(List.of(),
                query("select name from people order by age offset 3000000000 rows"));
    }

    @Test
    void anOrderWhoseColumnsAreStillThereIsNotSortedAgain() throws SQLException {
        String swapped = "select name, age from "
                + "(select age, name, remark from people order by age, name limit 5) ";
        assertFalse(Answers.plan(connection, swapped + "order by age").contains("Sort"));
        assertFalse(Answers.plan(connection, swapped + "order by age, name").contains("Sort"));
        assertTrue(Answers.plan(connection, swapped + "order by name").contains("Sort"));
        assertEquals(List.of("name 9, 0", "name 8, 1", "name 7, 2", "name 6, 3", "name 5, 4"),
                query(swapped + "order by age, name"));
    }

    /** The window was computed over what the join looked up. */
    @Test
    void aWindowUnderAJoinIsComputedOverAllRows() throws SQLException {
        for (int number = 0; number < ROWS; number++) {
            Purchase purchase = new Purchase();
            purchase.buyer = "k" + number;
            purchase.price = number;
            grid.cache("purchases").put("p" + number, purchase);
        }
        assertEquals(List.of("p3, 4"), query("select b._key, r.rn from purchases b join "
                + "(select _key, row_number() over (order by age) rn from people) r "
                + "on b.buyer = r._key where b.price = 3"));
        assertEquals(List.of("p3, 3, 10"), query("select b._key, r.age, r.most from purchases b "
                + "join (select name, age, count(age) over () most from people) r "
                + "on b.price = r.age where b.price = 3"));
    }

    /** Both conditions had one text, by which the planner took them for the same. */
    @Test
    void conditionsThatReadAlikeButForTheirQuotationMarksAreDifferentOnes() throws SQLException {
        Person person = new Person();
        person.name = "a";
        person.address = new Person.Address();
        person.address.city = "b";
        grid.cache("both").put("one", person);
        String count = "select count(*) from both_Person where name = ";
        assertEquals(List.of("0", "1"), query(count + "'a' and \"address.city\" = 'b' union all "
                + count + "'a'' and p.address.city = ''b'").stream().sorted().toList());
    }

    /** An index has bits, and orders them. */
    @Test
    void floatingPointNumbersCompareAsTheyDoWhereNoIndexDecides() throws SQLException {
        List<Double> scores = Arrays.asList(0.0, -0.0, 5.0, -5.0, Double.NaN, Double.MIN_VALUE,
                Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, null);
        for (int number = 0; number < scores.size(); number++) {
            Person person = new Person();
            person.score = scores.get(number);
            grid.cache("both").put("score " + number, person);
        }
        String count = "select count(*) from both_Person where ";
        String computed = "case when remark is null then score else 7e0 end";
        for (String operator : List.of("=", "<>", "<", "<=", ">", ">=")) {
            for (double value : new double[] {0, -0.0, 5, -5, Double.NaN, Double.MIN_VALUE,
                Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY}) {
                String compared = " " + operator + " cast(? as double)";
                assertEquals(query(count + computed + compared, value),
                        query(count + "score" + compared, value), operator + value);
            }
            for (String value : List.of("0", "0e0", "-5", "5e0")) {
                assertEquals(query(count + computed + " " + operator + value),
                        query(count + "score " + operator + value), operator + value);
            }
        }
        assertEquals(List.of("2"), query(count + "score = 0"));
        assertEquals(List.of("1"), query(count + "score > 5"));
        assertEquals(List.of("3"), query(count + "score in (?, 5)", -0.0));
        assertEquals("index, counted",
                Answers.reads(connection, count + "score >= cast(? as double)"));
    }

    @Test
    void wholeNumbersAreComparedUpToTheEndsOfTheirTypes() throws SQLException {
        List<Long> wealths = List.of(Long.MIN_VALUE, -1L, 0L, Long.MAX_VALUE);
        List<Integer> ages = List.of(Integer.MIN_VALUE, -1, 0, Integer.MAX_VALUE);
        for (int number = 0; number < wealths.size(); number++) {
            Person person = new Person();
            person.wealth = wealths.get(number);
            person.age = ages.get(number);
            grid.cache("both").put("whole " + number, person);
        }
        String count = "select count(*) from both_Person where ";
        String computed = " case when remark is null then ";
        for (String operator : List.of("=", "<>", "<", "<=", ">", ">=")) {
            for (int number = 0; number < wealths.size(); number++) {
                String bigint = operator + " cast(? as bigint)";
                assertEquals(query(count + computed + "wealth end " + bigint, wealths.get(number)),
                        query(count + "wealth " + bigint, wealths.get(number)), bigint + number);
                String integer = operator + " cast(? as integer)";
                assertEquals(query(count + computed + "age end " + integer, ages.get(number)),
                        query(count + "age " + integer, ages.get(number)), integer + number);
            }
        }
    }

    /** An index has U+FFFD before U+1F600, whose first half is less: merged, rows were left out. */
    @Test
    void textsThatAnIndexSortsAreNotMergedInAnotherOrder() throws SQLException {
        String replaced = "\uFFFD";
        String smile = "\uD83D\uDE00";
        for (int number = 0; number < 20; number++) {
            Person person = new Person();
            person.name = number == 0 ? replaced : number == 1 ? smile : "a" + number;
            grid.cache("both").put("text " + number, person);
        }
        String sorted = "(select name from both_Person where name is not null order by name "
                + "limit 100)";
        assertEquals(19, query("select a.name from " + sorted.replace("is not null", "<> '"
                + replaced + "'") + " a join " + sorted + " b on a.name = b.name").size());
        String rows = "(select name from both_Person where name > 'b' order by name)";
        List<String> both = query("select * from (" + rows + " union all " + rows
                + ") t order by name");
        assertEquals(4, both.size());
        assertEquals(both.get(0), both.get(1));
        assertEquals(both.get(2), both.get(3));
    }

    @Test
    void theLeastIsAValueAlsoWhereItIsTheGreatestOfItsType() throws SQLException {
        for (int number = 0; number < 20; number++) {
            Person person = new Person();
            person.wealth = number == 10 ? Long.MAX_VALUE : null;
            person.age = number == 10 ? Integer.MAX_VALUE : null;
            grid.cache("both").put("rich " + number, person);
        }
        assertEquals(List.of(Long.MAX_VALUE + ", " + Integer.MAX_VALUE),
                query("select min(wealth), min(age) from both_Person"));
    }
}
