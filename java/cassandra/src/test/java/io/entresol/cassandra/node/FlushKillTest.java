package io.entresol.cassandra.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.ResultSetFuture;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.exceptions.ReadFailureException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * A node is killed while all rows of a table on flash are written to SSTables. For a view alone, unless
 * {@code -Dentresol.thorough=true}; more rows: {@code -Dentresol.flushed.rows=N}.
 */
class FlushKillTest {
    private static final int ROWS = Integer.getInteger("entresol.flushed.rows", 20_000);
    private static final int IN_FLIGHT = 256;
    private static final long LOOK_NANOS = 2_000_000;
    private static final int MOST_LOOKS = 30_000;
    private static final String BEGUN = "Writing io.entresol.cassandra.EntresolMemtable";
    private static final String TABLE = "CREATE TABLE %s (k int PRIMARY KEY, i int, v text)"
            + " WITH memtable = '%s'";

    private String begun = BEGUN;

    @Test
    void rowsSurviveAKillWhileTheyAreWrittenToSstables() throws Exception {
        try (TestCluster node = new TestCluster("flush-node", 1)) {
            node.edit(1, "auto_snapshot: false", "auto_snapshot: true\nmaterialized_views_enabled: true");
            node.start();
            try (Cluster cluster = client(node); Session session = cluster.connect()) {
                session.execute("CREATE KEYSPACE flushes WITH replication ="
                        + " {'class': 'SimpleStrategy', 'replication_factor': 1}");
                session.execute("USE flushes");
                for (String table : List.of("viewed", "came", "moved", "truncated")) {
                    session.execute(TABLE.formatted(table,
                            table.equals("came") ? "default" : "entresol"));
                    session.execute("CREATE INDEX ON " + table + " (i)");
                    fill(session, table);
                }
            }
            // What was written before is in Cassandra's own memtable, and in the commit log.
            begun = "Writing Memtable-came";
            killWhileFlushing(node, "ALTER TABLE came WITH memtable = 'entresol'");
            check(node, "came");
            begun = BEGUN;
            killWhileFlushing(node, "CREATE MATERIALIZED VIEW by_i AS SELECT * FROM viewed WHERE"
                    + " i IS NOT NULL AND k IS NOT NULL PRIMARY KEY (i, k)");
            check(node, "viewed");
            // Nothing was written since the start.
            execute(node, "CREATE INDEX ON flushes.viewed (v)");
            assertEquals(1, found(node, "SELECT k FROM viewed WHERE v = '" + value(21) + "'"));
            if (!Boolean.getBoolean("entresol.thorough")) {
                return;
            }
            killWhileFlushing(node, "ALTER TABLE moved WITH memtable = 'default'");
            execute(node, "ALTER TABLE flushes.moved WITH memtable = 'entresol'");
            // Indexes of a table that moved are right from the next start on.
            node.kill(1);
            node.start();
            check(node, "moved");
            killWhileFlushing(node, "TRUNCATE truncated");
            if (isThere(node, "truncated")) {
                check(node, "truncated");
            } else {
                assertTrue(hasSnapshot(node), "a snapshot of rows that were truncated");
            }
        }
    }

    private static Cluster client(TestCluster node) {
        return node.client(1, ConsistencyLevel.ONE);
    }

    private static void fill(Session session, String table) {
        PreparedStatement insert = session.prepare("INSERT INTO " + table
                + " (k, i, v) VALUES (?, ?, ?)");
        Queue<ResultSetFuture> sent = new ArrayDeque<>();
        for (int key = 0; key < ROWS; key++) {
            sent.add(session.executeAsync(insert.bind(key, key % 100, value(key))));
            if (sent.size() > IN_FLIGHT) {
                sent.remove().getUninterruptibly();
            }
        }
        sent.forEach(ResultSetFuture::getUninterruptibly);
    }

    private static String value(int key) {
        return (key + " ").repeat(1 + key % 40);
    }

    private static void execute(TestCluster node, String statement) {
        try (Cluster cluster = client(node); Session session = cluster.connect()) {
            session.execute(statement);
        }
    }

    /** Nobody knows then whether the statement was executed. */
    private void killWhileFlushing(TestCluster node, String statement) throws Exception {
        long before = begun(node);
        try (Cluster cluster = client(node); Session session = cluster.connect("flushes")) {
            ResultSetFuture sent = session.executeAsync(statement);
            for (int looks = 0; begun(node) == before; looks++) {
                if (sent.isDone()) {
                    sent.getUninterruptibly();
                }
                assertTrue(looks < MOST_LOOKS, "no flush began after " + statement);
                LockSupport.parkNanos(LOOK_NANOS);
            }
            node.kill(1);
        }
        node.start();
    }

    private long begun(TestCluster node) throws IOException {
        try (Stream<String> lines = Files.lines(node.node(1).log())) {
            return lines.filter(line -> line.contains(begun)).count();
        }
    }

    private static boolean isThere(TestCluster node, String table) {
        try (Cluster cluster = client(node); Session session = cluster.connect("flushes")) {
            return session.execute("SELECT * FROM " + table + " LIMIT 1").one() != null;
        }
    }

    private static boolean hasSnapshot(TestCluster node) throws IOException {
        try (Stream<Path> files = Files.walk(node.node(1).root().resolve("data/flushes"))) {
            return files.anyMatch(file -> file.toString().contains("/snapshots/truncated-")
                    && file.toString().endsWith("-Data.db"));
        }
    }

    private static void check(TestCluster node, String table) {
        try (Cluster cluster = client(node); Session session = cluster.connect("flushes")) {
            Set<Integer> keys = new HashSet<>();
            for (Row row : session.execute("SELECT k, i, v FROM " + table)) {
                assertEquals(value(row.getInt("k")), row.getString("v"), table);
                keys.add(row.getInt("k"));
            }
            assertEquals(ROWS, keys.size(), "rows of " + table);
        }
        assertEquals(ROWS / 100, found(node, "SELECT k FROM " + table + " WHERE i = 7"), () ->
                "rows that the index of " + table + " finds");
    }

    /** Rows of a query by an index, which may be in the building still. */
    private static int found(TestCluster node, String query) {
        try (Cluster cluster = client(node); Session session = cluster.connect("flushes")) {
            for (int looks = 0;; looks++) {
                try {
                    return session.execute(query).all().size();
                } catch (ReadFailureException building) {
                    assertTrue(looks < MOST_LOOKS, building::getMessage);
                    LockSupport.parkNanos(LOOK_NANOS);
                }
            }
        }
    }
}
