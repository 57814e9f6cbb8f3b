package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.infinispan.Cache;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Random queries must answer as H2 answers them over the same rows. */
class DifferentialTest {
    static final long SEED = seed();
    static final int ROWS = 400;
    private static final int QUERIES = 100;
    private static final String[] NUMBERS = {"age", "wealth", "score"};
    private static final String[] TEXTS = {"name", "remark", "mood"};
    private static final String[] COLUMNS =
            {"_key", "name", "age", "wealth", "score", "active", "mood", "remark"};

    @TempDir
    Path folder;

    private static long seed() {
        String given = System.getenv("ENTRESOL_SEED");
        return given == null ? 7 : Long.parseLong(given);
    }

    @Test
    void randomQueriesAnswerAsAnotherDatabaseDoes() throws Exception {
        Random random = new Random(SEED);
        try (Grid grid = new Grid(folder);
                Connection other = DriverManager.getConnection("jdbc:h2:mem:")) {
            fill(random, grid.cache("people"), other);
            try (Connection ours = grid.connect()) {
                for (int number = 0; number < QUERIES; number++) {
                    compare(random, ours, other, number);
                }
            }
        }
    }

    @Test
    void randomJoinsAnswerAsAnotherDatabaseDoes() throws Exception {
        Random random = new Random(SEED);
        try (Grid grid = new Grid(folder);
                Connection other = DriverManager.getConnection("jdbc:h2:mem:")) {
            fill(random, grid.cache("people"), other);
            Joins.fill(random, grid.cache("purchases"), other);
            try (Connection ours = grid.connect()) {
                int lookups = 0;
                for (int number = 0; number < QUERIES; number++) {
                    String plan = compare(Joins.query(random), false, ours, other, number);
                    lookups += plan.contains("LookupJoin") ? 1 : 0;
                }
                assertTrue(lookups > QUERIES / 4, lookups + " of " + QUERIES);
            }
        }
    }

    @Test
    void randomParametersLimitsAndWindowsAnswerAsAnotherDatabaseDoes() throws Exception {
        Random random = new Random(SEED);
        try (Grid grid = new Grid(folder);
                Connection other = DriverManager.getConnection("jdbc:h2:mem:")) {
            fill(random, grid.cache("people"), other);
            Joins.fill(random, grid.cache("purchases"), other);
            try (Connection ours = grid.connect()) {
                for (int number = 0; number < 2 * QUERIES; number++) {
                    Nested.Query query = Nested.query(random);
                    compare(query.sql(), query.sorted(), ours, other, number,
                            query.parameters().toArray());
                }
            }
        }
    }

    /** Asks both the next query. */
    static void compare(Random random, Connection ours, Connection other, int number)
            throws SQLException {
        String where = random.nextInt(8) == 0 ? "" : " where " + condition(random, "", 2);
        String sql;
        boolean sorted = false;
        switch (random.nextInt(9)) {
            case 8 -> sql = computed(random, where);
            case 0 -> sql = "select count(*), count(age), min(score), max(name), sum(wealth) "
                    + "from people" + where;
            case 1 -> sql = "select mood, count(*), sum(age), count(distinct wealth), "
                    + "cast(avg(age) as double precision) from people"
                    + where + " group by mood having count(*) > " + random.nextInt(30);
            case 2 -> sql = "select " + extremes(random) + " from people"
                    + (random.nextBoolean() ? "" : where);
            case 4 -> {
                sql = groups(random, where);
                sorted = sql.contains(" order by ");
            }
            case 3 -> sql = "select distinct " + pick(random, COLUMNS) + " from people" + where;
            default -> {
                List<String> chosen = new ArrayList<>(List.of(COLUMNS));
                Collections.shuffle(chosen, random);
                List<String> columns = chosen.subList(0, 1 + random.nextInt(4));
                sql = "select " + String.join(", ", columns) + " from people" + where;
                sorted = random.nextBoolean();
                if (sorted) {
                    sql += order(random, columns);
                }
            }
        }
        compare(sql, sorted, ours, other, number);
    }

    /** Aggregates of groups of one or two columns, some of which, or in an order. */
    private static String groups(Random random, String where) {
        List<String> columns = new ArrayList<>(List.of(COLUMNS).subList(1, COLUMNS.length));
        Collections.shuffle(columns, random);
        String by = String.join(", ", columns.subList(0, 1 + random.nextInt(2)));
        String some = pick(random, "sum(age)", "min(score)", "max(wealth)", "count(remark)",
                "count(distinct score), sum(wealth)", "min(_key), max(active)");
        String sql = "select " + by + ", count(*), " + some + ", cast(sum(score) as double "
                + "precision), cast(avg(score) as double precision), min(name) from people"
                + where + " group by " + by;
        return switch (random.nextInt(4)) {
            case 0 -> sql + " having sum(age) > " + random.nextInt(40) + " or max(_key) > 'k3'";
            case 1 -> sql + " order by " + by.replace(",", " nulls last,") + " nulls last limit "
                    + (1 + random.nextInt(20));
            default -> sql;
        };
    }

    /** Aggregates of expressions, some of rows that no index finds. */
    private static String computed(Random random, String where) {
        List<String> asked = new ArrayList<>(List.of("count(*)"));
        for (int count = 1 + random.nextInt(3); count > 0; count--) {
            asked.add(pick(random, "sum(age * 3 - wealth)", "sum(wealth + age)",
                    "count(age + wealth)", "max(age * 2 - wealth)", "min(upper(name))", "count(distinct age + 1)",
                    "sum(case when active then wealth else 1 end)",
                    "sum(cast(wealth as decimal(19)) * 2)", "sum(cast(score * 4 as bigint))",
                    "cast(avg(age * 1e0 + wealth) as double precision)",
                    "sum(wealth) filter (where remark is null or age > 20)",
                    "count(*) filter (where name like 'a%' or mood = 'GLAD')",
                    "max(coalesce(remark, name) || 'x')"));
        }
        String condition = pick(random, "", "upper(name) > 'B'", "age + wealth > 30",
                "mood || name <> 'GLADa'", "coalesce(age, 7) in (7, 8, 9, 10, 30)");
        String rows = " from people" + (condition.isEmpty() ? where : where.isEmpty()
                ? " where " + condition : where + " and " + condition);
        String by = pick(random, "", "mood", "active", "age + 1", "upper(name)",
                "case when age > 20 then 'old' else mood end");
        return "select " + (by.isEmpty() ? "" : by + ", ") + String.join(", ", asked) + rows
                + (by.isEmpty() ? "" : " group by " + by);
    }

    private static String extremes(Random random) {
        List<String> asked = new ArrayList<>();
        for (int count = 1 + random.nextInt(3); count > 0; count--) {
            asked.add(pick(random, "min", "max", "count", "count(*), min") + "("
                    + pick(random, "age", "wealth", "score", "name", "remark", "_key") + ")");
        }
        return String.join(", ", asked);
    }

    /** Asks both the same; the plan. */
    static String compare(String sql, boolean sorted, Connection ours, Connection other,
            int number, Object... parameters) throws SQLException {
        String plan = Answers.plan(ours, sql);
        String replay = "ENTRESOL_SEED=" + SEED + ", query " + number + ": " + sql + " with "
                + Arrays.toString(parameters) + "\n" + plan;
        List<String> expected = answered(other, sql, sorted, parameters);
        assertEquals(expected, answered(ours, sql, sorted, parameters), replay);
        return plan;
    }

    private static List<String> answered(Connection connection, String sql, boolean sorted,
            Object... parameters) throws SQLException {
        List<String> rows = new ArrayList<>(Answers.of(connection, sql, parameters));
        if (!sorted) {
            Collections.sort(rows);
        }
        return rows;
    }

    /** An order that leaves nothing open, so that limits mean the same rows. */
    private static String order(Random random, List<String> columns) {
        StringBuilder order = new StringBuilder(" order by ");
        for (String column : columns) {
            order.append(column)
                    .append(random.nextBoolean() ? " desc nulls last" : " asc nulls "
                            + (random.nextBoolean() ? "last" : "first"))
                    .append(", ");
        }
        order.setLength(order.length() - 2);
        if (random.nextBoolean()) {
            order.append(" offset ").append(random.nextInt(30)).append(" rows fetch next ")
                    .append(1 + random.nextInt(40)).append(" rows only");
        }
        return order.toString();
    }

    /** A condition on people, whose columns follow the prefix. */
    static String condition(Random random, String prefix, int depth) {
        if (depth > 0 && random.nextInt(3) > 0) {
            String word = random.nextBoolean() ? " and " : " or ";
            String both = "(" + condition(random, prefix, depth - 1) + word
                    + condition(random, prefix, depth - 1) + ")";
            return random.nextInt(5) == 0 ? "not " + both : both;
        }
        String number = prefix + pick(random, NUMBERS);
        String name = pick(random, TEXTS);
        String text = prefix + name;
        return switch (random.nextInt(9)) {
            case 0 -> number + pick(random, " = ", " <> ", " < ", " <= ", " > ", " >= ")
                    + (random.nextInt(60) - 5);
            case 1 -> number + " between " + random.nextInt(20) + " and "
                    + (10 + random.nextInt(40));
            case 2 -> number + " in (" + random.nextInt(50) + ", " + random.nextInt(50) + ", "
                    + random.nextInt(50) + ")";
            case 3 -> text + pick(random, " = '", " <> '") + word(random, name) + "'";
            case 4 -> prefix + pick(random, "name", "remark") + " like '"
                    + pick(random, "a%", "%b", "_b%", "%", "a_", "b") + "'";
            case 5 -> prefix + pick(random, COLUMNS)
                    + pick(random, " is null", " is not null");
            case 6 -> (random.nextBoolean() ? "" : "not ") + prefix + "active";
            case 7 -> prefix + "_key" + pick(random, " = ", " <> ", " > ") + "'k"
                    + random.nextInt(ROWS) + "'";
            default -> prefix + "name" + pick(random, " < '", " >= '")
                    + word(random, "name") + "'";
        };
    }

    private static String word(Random random, String column) {
        return column.equals("mood") ? pick(random, "CALM", "GLAD", "CROSS", "SAD")
                : letters(random);
    }

    static String letters(Random random) {
        StringBuilder word = new StringBuilder();
        for (int length = random.nextInt(3); length >= 0; length--) {
            word.append("abAé*ж".charAt(random.nextInt(6)));
        }
        return word.toString();
    }

    static String pick(Random random, String... from) {
        return from[random.nextInt(from.length)];
    }

    /** The same rows in a cache and in the other database. */
    static void fill(Random random, Cache<String, Person> cache, Connection other)
            throws SQLException {
        other.createStatement().execute("create table people (_key varchar primary key, "
                + "name varchar, age int, wealth bigint, score double precision, active boolean, "
                + "mood varchar, remark varchar)");
        try (PreparedStatement insert = other.prepareStatement(
                "insert into people values (?, ?, ?, ?, ?, ?, ?, ?)")) {
            for (int number = 0; number < ROWS; number++) {
                Person person = new Person();
                person.name = some(random, letters(random));
                person.age = some(random, random.nextInt(60) - 5);
                person.wealth = some(random, (long) random.nextInt(60) - 5);
                person.score = some(random, random.nextInt(120) / 2.0);
                person.active = some(random, random.nextBoolean());
                person.mood = some(random, Person.Mood.values()[random.nextInt(3)]);
                // Some are keys of others.
                person.remark = some(random, random.nextInt(3) == 0
                        ? "k" + random.nextInt(ROWS) : letters(random));
                cache.put("k" + number, person);
                Object[] cells = {"k" + number, person.name, person.age, person.wealth,
                        person.score, person.active,
                        person.mood == null ? null : person.mood.name(), person.remark};
                for (int place = 0; place < cells.length; place++) {
                    if (cells[place] == null) {
                        insert.setNull(place + 1, Types.NULL);
                    } else {
                        insert.setObject(place + 1, cells[place]);
                    }
                }
                insert.executeUpdate();
            }
        }
    }

    static <T> T some(Random random, T value) {
        return random.nextInt(5) == 0 ? null : value;
    }
}
