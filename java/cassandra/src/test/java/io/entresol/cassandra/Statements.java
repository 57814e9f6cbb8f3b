package io.entresol.cassandra;

import java.util.List;
import java.util.Random;

/** Random statements of CQL over a schema; the table's name is {@code %t}. */
final class Statements {
    private static final int KEYS = 8;
    private static final int CLUSTERINGS = 12;
    private static final int TIMES = 400;
    /** A collection that is set is deleted one microsecond before. */
    private static final int STEP = 8;
    /** Seconds that no test lasts. */
    private static final int TTL = 100_000;

    /** A table, and which kinds of columns it has. */
    record Schema(String create, boolean isWide, boolean isCounted) {
    }

    static final Schema WIDE = new Schema("CREATE TABLE %t (k int, a int, b text, s int static,"
            + " st set<int> static, v int, t text, m map<int, text>, z set<text>, l list<int>,"
            + " f frozen<list<int>>, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY"
            + " (a ASC, b DESC)", true, false);
    static final Schema NARROW = new Schema(
            "CREATE TABLE %t (k int PRIMARY KEY, v int, t text, m map<int, text>, z set<text>,"
            + " l list<int>, f frozen<list<int>>) WITH comment = ''", false, false);
    static final Schema COUNTERS = new Schema(
            "CREATE TABLE %t (k int, a int, b text, n counter, o counter, PRIMARY KEY (k, a, b))"
            + " WITH CLUSTERING ORDER BY (a ASC, b DESC)", true, true);

    final Random random;
    private long time = 1_000_000;

    Statements(Random random) {
        this.random = random;
    }

    /** A statement that changes rows. */
    String change(Schema schema) {
        int kind = random.nextInt(100);
        if (schema.isCounted()) {
            return kind < 90 ? "UPDATE %t SET " + (random.nextBoolean() ? "n = n + " : "o = o - ")
                    + random.nextInt(10) + " WHERE " + row(schema) : "DELETE FROM %t WHERE "
                    + (kind < 98 ? row(schema) : key());
        }
        if (kind < 40) {
            return insert(schema);
        }
        if (kind < 65) {
            return "UPDATE %t " + using() + " SET " + assignment() + " WHERE " + row(schema);
        }
        return kind < 70 && schema.isWide() ? ofStatic() : delete(schema, kind);
    }

    /** A statement that reads rows. */
    String query(Schema schema) {
        int kind = random.nextInt(schema.isWide() ? 9 : 2);
        return switch (kind) {
            case 0 -> "SELECT * FROM %t WHERE " + key();
            case 1 -> "SELECT * FROM %t WHERE token(k) > " + random.nextLong();
            case 2 -> "SELECT * FROM %t WHERE " + key() + " ORDER BY a DESC, b ASC";
            case 3 -> "SELECT * FROM %t WHERE " + slice();
            case 4 -> "SELECT * FROM %t WHERE " + slice() + " ORDER BY a DESC, b ASC LIMIT 3";
            case 5 -> "SELECT * FROM %t WHERE " + key() + " AND a IN (" + clustering() + ", "
                    + clustering() + ")";
            case 6 -> "SELECT DISTINCT k FROM %t";
            case 7 -> "SELECT k, a, count(*) FROM %t GROUP BY k, a";
            default -> "SELECT * FROM %t WHERE " + row(schema);
        };
    }

    private String insert(Schema schema) {
        String columns = schema.isWide() ? "k, a, b, v, t" : "k, v, t";
        String values = random.nextInt(KEYS) + (schema.isWide()
                ? ", " + clustering() + ", '" + letter() + "'" : "");
        return "INSERT INTO %t (" + columns + ") VALUES (" + values + ", " + random.nextInt(100)
                + ", '" + text() + "') " + using();
    }

    private String ofStatic() {
        return "UPDATE %t " + using() + " SET " + pick(List.of(
                "s = " + random.nextInt(100), "s = null", "st = st + {" + clustering() + "}",
                "st = st - {" + clustering() + "}", "st = {1, 2}")) + " WHERE " + key();
    }

    /**
     * Deletions of columns, ranges and partitions have moments of their own each: where two of them
     * are equal, Cassandra's memtables show one that its merges drop.
     */
    private String delete(Schema schema, int kind) {
        if (kind < 80) {
            String column = pick(List.of("v", "t", "m", "z", "l", "f", "m[" + clustering() + "]"));
            return "DELETE " + column + " FROM %t" + stamped(1) + row(schema);
        }
        if (kind < 92 || !schema.isWide()) {
            return "DELETE FROM %t" + stamped(0) + row(schema);
        }
        return "DELETE FROM %t" + (kind < 98 ? stamped(3) + slice() : stamped(5) + key());
    }

    private String stamped(int moment) {
        return " USING TIMESTAMP " + (stamp() + moment) + " WHERE ";
    }

    private String assignment() {
        return pick(List.of("v = " + random.nextInt(100), "t = '" + text() + "'", "v = null",
                "m[" + clustering() + "] = '" + text() + "'", "m = {1: 'one', 2: '" + text() + "'}",
                "m = m - {" + clustering() + "}", "z = z + {'" + letter() + "', '" + text() + "'}",
                "z = z - {'" + letter() + "'}", "z = {'" + letter() + "'}", "z = null",
                "f = [" + clustering() + ", " + clustering() + "]", "l = null"));
    }

    private String slice() {
        int from = clustering();
        return switch (random.nextInt(4)) {
            case 0 -> key() + " AND a >= " + from + " AND a < " + (from + 3);
            case 1 -> key() + " AND a = " + from;
            case 2 -> key() + " AND a = " + from + " AND b > '" + letter() + "'";
            default -> key() + " AND a > " + from;
        };
    }

    private String using() {
        String stamp = "USING TIMESTAMP " + stamp();
        return random.nextInt(10) == 0 ? stamp + " AND TTL " + TTL : stamp;
    }

    /** Mostly rising, sometimes from the past, often equal. */
    private long stamp() {
        time += STEP * random.nextInt(3);
        return random.nextInt(4) == 0 ? time - STEP * random.nextInt(TIMES) : time;
    }

    private String row(Schema schema) {
        return schema.isWide() ? key() + " AND a = " + clustering() + " AND b = '" + letter() + "'"
                : key();
    }

    private String key() {
        return "k = " + random.nextInt(KEYS);
    }

    private int clustering() {
        return random.nextInt(CLUSTERINGS);
    }

    private String letter() {
        return "abcdef".charAt(random.nextInt(6)) + "";
    }

    private String text() {
        // Some are larger than a part of a row.
        int most = switch (random.nextInt(200)) {
            case 0 -> 20_000;
            case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 -> 900;
            default -> 12;
        };
        return letter().repeat(1 + random.nextInt(most));
    }

    private <T> T pick(List<T> all) {
        return all.get(random.nextInt(all.size()));
    }
}
