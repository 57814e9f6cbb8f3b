package io.entresol.cassandra.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.Host;
import com.datastax.driver.core.ResultSetFuture;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.TokenRange;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.TreeSet;

/**
 * Rows of a ring: small partitions, a wide one, static rows, collections, and deletions of all kinds.
 * Each statement goes to a table of Cassandra's own, too, which says what is right.
 */
final class RingRows {
    static final String KEYSPACE = "ring";
    private static final String TWINS = "twins";
    private static final int PARTITIONS = Boolean.getBoolean("entresol.thorough") ? 3000 : 300;
    private static final int WIDE = -1;
    private static final int ROWS = 4;
    private static final int IN_FLIGHT = 64;

    private final TestCluster ring;
    private final TreeSet<String> expected = new TreeSet<>();
    private long moment = 1_000_000;

    RingRows(TestCluster ring) {
        this.ring = ring;
    }

    /** Makes the tables, with so many replicas of each row. */
    void make(int replicas, String memtable) {
        try (Cluster cluster = ring.client(1, ConsistencyLevel.ONE);
                Session session = cluster.connect()) {
            for (String keyspace : List.of(KEYSPACE, TWINS)) {
                session.execute("CREATE KEYSPACE " + keyspace + " WITH replication = {'class':"
                        + " 'SimpleStrategy', 'replication_factor': " + replicas + "}");
                session.execute("CREATE TABLE " + keyspace + ".rows (k int, c int, s int static,"
                        + " v text, z set<text>, PRIMARY KEY (k, c)) WITH speculative_retry = 'NEVER'"
                        + " AND memtable = '" + (keyspace.equals(TWINS) ? "default" : memtable) + "'");
            }
        }
    }

    /** Has the rows' table use another memtable. */
    void alter(String memtable) {
        try (Cluster cluster = ring.client(1, ConsistencyLevel.ONE);
                Session session = cluster.connect(KEYSPACE)) {
            session.execute("ALTER TABLE rows WITH memtable = '" + memtable + "'");
        }
    }

    /** Makes the first rows. */
    void fill(ConsistencyLevel level) {
        try (Writer writer = new Writer(level)) {
            for (int key = 0; key < PARTITIONS; key++) {
                for (int row = 0; row < ROWS; row++) {
                    writer.write("INSERT INTO rows (k, c, v, z) VALUES (" + key + ", " + row + ", '"
                            + "first ".repeat(1 + key % 9) + "', {'a', 'b" + row + "'})", "INSERT");
                }
                if (key % 3 == 0) {
                    writer.write("INSERT INTO rows (k, s) VALUES (" + key + ", " + key + ")",
                            "INSERT");
                }
            }
            for (int row = 0; row < 2 * PARTITIONS; row++) {
                writer.write("INSERT INTO rows (k, c, v) VALUES (" + WIDE + ", " + row + ", '"
                        + "wide ".repeat(50) + "')", "INSERT");
            }
            delete(writer, 0);
        }
        learn(level);
    }

    /** Changes rows of all partitions, and deletes others than before. */
    void change(ConsistencyLevel level) {
        try (Writer writer = new Writer(level)) {
            for (int key = 0; key < PARTITIONS; key++) {
                writer.write("UPDATE rows %t SET v = 'changed " + moment + "', z = z + {'c"
                        + moment % 7 + "'} WHERE k = " + key + " AND c = 1", "UPDATE");
                writer.write("INSERT INTO rows (k, c, v) VALUES (" + (PARTITIONS + key) + ", 0, 'new "
                        + moment + "')", "INSERT");
            }
            delete(writer, (int) (moment % 5) + 1);
        }
        learn(level);
    }

    private void delete(Writer writer, int shift) {
        for (int key = shift; key < PARTITIONS; key += 10) {
            writer.write("DELETE FROM rows %t WHERE k = " + key, "DELETE");
            writer.write("DELETE FROM rows %t WHERE k = " + (key + 2) + " AND c = 2", "DELETE");
            writer.write("DELETE FROM rows %t WHERE k = " + (key + 4) + " AND c > 2", "DELETE");
            writer.write("DELETE s, z FROM rows %t WHERE k = " + (key + 6) + " AND c = 3", "DELETE");
        }
        writer.write("DELETE FROM rows %t WHERE k = " + WIDE + " AND c > " + 100 * shift + " AND c < "
                + (100 * shift + 20), "DELETE");
    }

    /** What the twin says is there. */
    private void learn(ConsistencyLevel level) {
        expected.clear();
        try (Cluster cluster = ring.client(1, level); Session session = cluster.connect(TWINS)) {
            session.execute("SELECT token(k), k, c, s, v, z, writetime(v) FROM rows")
                    .forEach(row -> expected.add(text(row)));
        }
        assertTrue(expected.size() > PARTITIONS, "rows: " + expected.size());
    }

    /** Each of these nodes has, by itself, the rows of its part of the ring, and only those. */
    void check(int... numbers) {
        for (int number : numbers) {
            TreeSet<String> wanted = new TreeSet<>();
            TreeSet<String> found = read(number, wanted);
            TreeSet<String> absent = new TreeSet<>(wanted);
            absent.removeAll(found);
            found.removeAll(wanted);
            assertEquals("[] []", first(absent) + " " + first(found), () -> "rows that node " + number
                    + " lacks, and those that it should not have: " + absent.size() + " and "
                    + found.size() + " of " + wanted.size());
        }
    }

    /** How many rows a node has by itself. */
    int count(int number) {
        return read(number, new TreeSet<>()).size();
    }

    private static List<String> first(TreeSet<String> rows) {
        return rows.stream().limit(3).toList();
    }

    /** Rows of a node's ranges as it has them itself, and as they should be. */
    private TreeSet<String> read(int number, TreeSet<String> wanted) {
        TreeSet<String> found = new TreeSet<>();
        try (Cluster cluster = ring.client(number, ConsistencyLevel.ONE);
                Session session = cluster.connect(KEYSPACE)) {
            Host host = cluster.getMetadata().getAllHosts().stream()
                    .filter(one -> one.getEndPoint().resolve().getAddress().getHostAddress()
                            .equals("127.0.0." + number)).findFirst().orElseThrow();
            for (TokenRange range : cluster.getMetadata().getTokenRanges(KEYSPACE, host)) {
                expected.stream().filter(row -> range.contains(cluster.getMetadata()
                        .newToken(row.substring(0, row.indexOf(' '))))).forEach(wanted::add);
                for (TokenRange part : range.unwrap()) {
                    session.execute("SELECT token(k), k, c, s, v, z, writetime(v) FROM rows"
                            + " WHERE token(k) > ? AND token(k) <= ?", part.getStart().getValue(),
                            part.getEnd().getValue()).forEach(row -> found.add(text(row)));
                }
            }
        }
        return found;
    }

    private static String text(Row row) {
        StringBuilder text = new StringBuilder();
        for (int column = 0; column < row.getColumnDefinitions().size(); column++) {
            text.append(row.getObject(column)).append(' ');
        }
        return text.toString();
    }

    /** Sends statements to both tables, some at a time. */
    private final class Writer implements AutoCloseable {
        private final Cluster cluster;
        private final Session session;
        private final Queue<ResultSetFuture> sent = new ArrayDeque<>();

        Writer(ConsistencyLevel level) {
            cluster = ring.client(1, level);
            session = cluster.connect();
        }

        /** A statement; its timestamp goes to {@code %t}, or to the end. */
        void write(String statement, String kind) {
            String stamp = "USING TIMESTAMP " + moment++;
            String whole = kind.equals("INSERT") ? statement + " " + stamp
                    : statement.replace("%t", stamp);
            for (String keyspace : List.of(KEYSPACE, TWINS)) {
                sent.add(session.executeAsync(whole.replaceFirst("rows", keyspace + ".rows")));
            }
            while (sent.size() > IN_FLIGHT) {
                sent.remove().getUninterruptibly();
            }
        }

        @Override
        public void close() {
            sent.forEach(ResultSetFuture::getUninterruptibly);
            session.close();
            cluster.close();
        }
    }
}
