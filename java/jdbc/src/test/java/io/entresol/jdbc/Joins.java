package io.entresol.jdbc;

import static io.entresol.jdbc.DifferentialTest.condition;
import static io.entresol.jdbc.DifferentialTest.letters;
import static io.entresol.jdbc.DifferentialTest.pick;
import static io.entresol.jdbc.DifferentialTest.some;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.util.Random;
import org.infinispan.Cache;

/** Random queries of two tables. */
final class Joins {
    private static final int ROWS = 300;
    /** The key, indexed fields, one that is not, and types that differ from the other side's. */
    private static final String[] EQUAL = {"p._key = b.buyer", "b.buyer = p.name",
            "b.buyer = p.remark", "b.price = p.age", "p.wealth = b.price", "b.price = p.score",
            "p.name = b.buyer and p.age = b.price", "b._key = p._key"};
    private static final String[] SELF = {"p.remark = q._key", "p._key = q.remark",
            "p.name = q.name", "q.remark = p.name", "p.age = q.wealth", "p.score = q.age"};

    private Joins() {}

    static String query(Random random) {
        String people = random.nextInt(3) == 0 ? "" : " where " + condition(random, "p.", 1);
        return switch (random.nextInt(8)) {
            case 0 -> "select p._key, q._key, q.remark, q.age from people p" + kind(random)
                    + "people q on " + pick(random, SELF) + further(random, "q.") + people;
            case 1 -> "select b.buyer, count(*), sum(p.age), max(p.remark) from purchases b"
                    + kind(random) + "people p on " + pick(random, EQUAL) + further(random, "p.")
                    + " where " + purchase(random) + " group by b.buyer";
            case 2 -> "select p._key, p.remark from people p where p."
                    + pick(random, "_key", "name", "remark") + pick(random, " in", " not in")
                    + " (select b.buyer from purchases b where " + purchase(random)
                    + pick(random, "", " and b.buyer is not null") + ")";
            case 3 -> "select p._key, p.age from people p where" + pick(random, "", " not")
                    + " exists (select 1 from purchases b where " + pick(random, EQUAL) + " and "
                    + purchase(random) + ")";
            case 4 -> "select p._key, b._key, q._key from purchases b join people p on "
                    + pick(random, EQUAL) + kind(random) + "people q on " + pick(random, SELF)
                    + " where " + purchase(random);
            case 5 -> "select p._key, p.remark, b.price from people p" + kind(random)
                    + "purchases b on " + pick(random, EQUAL) + people;
            default -> "select b._key, b.price, p._key, p.name, p.remark from purchases b"
                    + kind(random) + "people p on " + pick(random, EQUAL) + further(random, "p.")
                    + " where " + purchase(random);
        };
    }

    private static String kind(Random random) {
        return pick(random, " join ", " left join ", " right join ");
    }

    /** A condition of the join besides its equality. */
    private static String further(Random random, String prefix) {
        return random.nextBoolean() ? "" : " and " + condition(random, prefix, 1);
    }

    private static String purchase(Random random) {
        return switch (random.nextInt(4)) {
            case 0 -> "b.price < " + random.nextInt(60);
            case 1 -> "b._key in ('b1', 'b" + random.nextInt(ROWS) + "', 'k7')";
            case 2 -> "b.buyer like '" + pick(random, "k1%", "a%", "%") + "'";
            default -> "b.price between " + random.nextInt(10) + " and " + random.nextInt(50);
        };
    }

    /** The same rows in a cache and in the other database. Some buyers are keys of people. */
    static void fill(Random random, Cache<String, Purchase> cache, Connection other)
            throws SQLException {
        other.createStatement().execute("create table purchases (_key varchar primary key, "
                + "buyer varchar, price int)");
        try (PreparedStatement insert = other.prepareStatement(
                "insert into purchases values (?, ?, ?)")) {
            for (int number = 0; number < ROWS; number++) {
                String key = (random.nextInt(4) == 0 ? "k" : "b") + number;
                Purchase purchase = new Purchase();
                purchase.buyer = some(random, random.nextBoolean() ? letters(random)
                        : "k" + random.nextInt(2 * DifferentialTest.ROWS));
                purchase.price = some(random, random.nextInt(60) - 5);
                cache.put(key, purchase);
                insert.setString(1, key);
                insert.setString(2, purchase.buyer);
                insert.setObject(3, purchase.price, Types.INTEGER);
                insert.executeUpdate();
            }
        }
    }
}
