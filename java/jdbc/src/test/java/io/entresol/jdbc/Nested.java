package io.entresol.jdbc;

import static io.entresol.jdbc.DifferentialTest.condition;
import static io.entresol.jdbc.DifferentialTest.letters;
import static io.entresol.jdbc.DifferentialTest.pick;
import static io.entresol.jdbc.DifferentialTest.some;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/** Random queries with parameters, with queries inside of them, and with windows under joins. */
final class Nested {
    private static final String[] SORTABLE = {"name", "age", "wealth", "score"};

    /** A query, whether its rows come in an order, and its parameters. */
    record Query(String sql, boolean sorted, List<Object> parameters) {}

    private Nested() {}

    static Query query(Random random) {
        return switch (random.nextInt(3)) {
            case 0 -> parameters(random);
            case 1 -> new Query(limited(random), true, List.of());
            default -> new Query(windowed(random), false, List.of());
        };
    }

    /** Some of the parameters are null. */
    private static Query parameters(Random random) {
        List<Object> parameters = new ArrayList<>();
        String select = pick(random, "select _key, age, name", "select count(*), count(age)",
                "select name", "select _key, remark");
        return new Query(select + " from people where " + compared(random, 2, parameters), false,
                parameters);
    }

    private static String compared(Random random, int depth, List<Object> parameters) {
        if (depth > 0 && random.nextInt(4) > 0) {
            String word = pick(random, " and ", " or ", " or ");
            String both = "(" + compared(random, depth - 1, parameters) + word
                    + compared(random, depth - 1, parameters) + ")";
            return random.nextInt(6) == 0 ? "not " + both : both;
        }
        String column = pick(random, SORTABLE);
        String operator = pick(random, "=", "<>", "<", "<=", ">", ">=", "in", "between");
        int count = switch (operator) {
            case "in" -> 1 + random.nextInt(3);
            case "between" -> 2;
            default -> 1;
        };
        for (int number = 0; number < count; number++) {
            parameters.add(some(random, some(random, parameter(random, column))));
        }
        return column + " " + operator + switch (operator) {
            case "in" -> " (" + String.join(", ", Collections.nCopies(count, "?")) + ")";
            case "between" -> " ? and ?";
            default -> " ?";
        };
    }

    private static Object parameter(Random random, String column) {
        int number = random.nextInt(60) - 5;
        return switch (column) {
            case "name" -> letters(random);
            case "age" -> number;
            case "wealth" -> (long) number;
            default -> number / 2.0;
        };
    }

    /** The first rows in one order, of which some columns are told in another. */
    private static String limited(Random random) {
        List<String> inner = new ArrayList<>(List.of(SORTABLE));
        Collections.shuffle(inner, random);
        inner = inner.subList(0, 2 + random.nextInt(3));
        List<String> outer = new ArrayList<>(inner);
        Collections.shuffle(outer, random);
        outer = outer.subList(0, 1 + random.nextInt(outer.size()));
        String where = random.nextBoolean() ? "" : " where " + condition(random, "", 1);
        String rows = "(select " + String.join(", ", inner) + " from people" + where
                + order(random, inner) + " fetch next " + (1 + random.nextInt(40))
                + " rows only) p";
        Collections.shuffle(outer, random);
        return "select " + String.join(", ", outer) + (random.nextInt(3) == 0
                ? ", count(*) from " + rows + " group by " + String.join(", ", outer)
                : " from " + rows) + order(random, outer);
    }

    /** By all of the columns, so that rows of which either may come first are the same. */
    private static String order(Random random, List<String> columns) {
        List<String> sorted = new ArrayList<>(columns);
        Collections.shuffle(sorted, random);
        return " order by " + String.join(", ", sorted.stream()
                .map(each -> each + pick(random, " asc", " desc") + " nulls last").toList());
    }

    private static String windowed(Random random) {
        String where = random.nextBoolean() ? "" : " where " + condition(random, "", 1);
        String window = pick(random, "row_number() over (order by _key)",
                "count(*) over (partition by age)", "sum(age) over (partition by mood)",
                "max(wealth) over ()", "sum(wealth) over (partition by active order by _key)",
                "rank() over (partition by active order by age nulls last, _key)");
        return "select b._key, r._key, r.w from purchases b" + pick(random, " join ", " left join ")
                + "(select _key, name, age, " + window + " w from people" + where + ") r on "
                + pick(random, "b.buyer = r._key", "b.price = r.age", "b.buyer = r.name")
                + " where b.price between " + random.nextInt(20) + " and " + random.nextInt(60);
    }
}
