package io.entresol.cassandra.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.exceptions.DriverException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * What becomes of tables on flash when something fails. How it is made good takes
 * {@code -Dentresol.thorough=true}.
 */
class FailuresTest {
    private static final int ROWS = 4_000;
    private static final String KEYSPACE = "CREATE KEYSPACE failures WITH replication ="
            + " {'class': 'SimpleStrategy', 'replication_factor': %d}";
    private static final String TABLE = "CREATE TABLE failures.%s (k int PRIMARY KEY, v text)"
            + " WITH memtable = 'entresol' AND speculative_retry = 'NEVER'";

    private static Cluster client(TestCluster ring, int number) {
        return ring.client(number, ConsistencyLevel.ONE);
    }

    private static void make(TestCluster ring, int replicas, String... tables) {
        try (Cluster cluster = client(ring, 1); Session session = cluster.connect()) {
            session.execute(KEYSPACE.formatted(replicas));
            for (String table : tables) {
                session.execute(TABLE.formatted(table));
            }
        }
    }

    private static int count(TestCluster ring, int number, String table) {
        try (Cluster cluster = client(ring, number); Session session = cluster.connect("failures")) {
            return session.execute("SELECT k FROM " + table).all().size();
        }
    }

    @Test
    void rowsOfBothTimesAreThereAfterAStartWithoutThePlugin() throws Exception {
        try (TestCluster node = new TestCluster("unplugged-node", 1)) {
            node.start();
            make(node, 1, "rows");
            write(node, "rows", 0, 100);
            node.kill(1);
            ClusterTest.unplug(node, 1);
            node.start();
            assertTrue(Files.readString(node.node(1).log()).contains("Invalid memtable configuration"));
            assertEquals(0, count(node, 1, "rows"));
            write(node, "rows", 50, 200);
            node.kill(1);
            ClusterTest.plug(node, 1);
            node.start();
            assertEquals(200, count(node, 1, "rows"));
        }
    }

    private static void write(TestCluster node, String table, int from, int to) {
        try (Cluster cluster = client(node, 1); Session session = cluster.connect("failures")) {
            for (int key = from; key < to; key++) {
                session.execute("INSERT INTO " + table + " (k, v) VALUES (?, ?)", key, "v" + key);
            }
        }
    }

    @Tag("minutes")
    @Test
    void aFullStoreRefusesWritesAndAnswersReadsAcrossAKill() throws Exception {
        try (TestCluster node = new TestCluster("full-node", 1)) {
            node.start();
            make(node, 1, "large", "small");
            write(node, "small", 0, 100);
            Random random = new Random(1);
            int written = 0;
            try (Cluster cluster = client(node, 1); Session session = cluster.connect("failures")) {
                byte[] bytes = new byte[3_500];
                DriverException refused = null;
                while (refused == null && written < 200_000) {
                    random.nextBytes(bytes);
                    try {
                        session.execute("INSERT INTO large (k, v) VALUES (?, ?)", written,
                                java.util.HexFormat.of().formatHex(bytes));
                        written++;
                    } catch (DriverException failed) {
                        refused = failed;
                    }
                }
                assertTrue(refused != null && written > 10_000, "rows: " + written);
                assertEquals(100, session.execute("SELECT k FROM small").all().size());
                assertEquals(written - 1, session.execute("SELECT k FROM large WHERE k = ?",
                        written - 1).one().getInt("k"));
            }
            node.kill(1);
            node.start();
            int found = count(node, 1, "large");
            assertTrue(found == written || found == written + 1, "rows after a kill: " + found);
            assertEquals(100, count(node, 1, "small"));
        }
    }

    @Test
    void aReadErrorEndsServiceAsThePolicyForDisksSays() throws Exception {
        try (TestCluster node = new TestCluster("cut-node", 1)) {
            node.edit(1, "        journal_size: ", "        pending_memory: 64KiB\n"
                    + "        journal_size: ");
            node.start();
            make(node, 1, "rows");
            write(node, "rows", 0, ROWS);
            node.stop(1);
            node.start();
            try (Cluster cluster = client(node, 1); Session session = cluster.connect("failures")) {
                // Who reads behind the end of a device gets an error from it.
                try (RandomAccessFile store = new RandomAccessFile(
                        node.node(1).store().toFile(), "rw")) {
                    store.setLength(1 << 20);
                }
                assertThrows(DriverException.class, () ->
                        session.execute("SELECT v FROM rows").all());
            }
            String log = Files.readString(node.node(1).log());
            assertTrue(log.contains("FSReadError"), "a read error in the log");
            assertTrue(log.contains("Stopping transports as disk_failure_policy is stop"),
                    "the end of service in the log");
        }
    }

    @Tag("minutes")
    @Test
    void aDamagedRecordFailsReadsOfItsPageUntilItsStoreIsMadeAnew() throws Exception {
        try (TestCluster ring = new TestCluster("damaged-ring", 2)) {
            for (int number = 1; number <= 2; number++) {
                ring.edit(number, "        journal_size: ", "        pending_memory: 64KiB\n"
                        + "        journal_size: ");
            }
            ring.start();
            make(ring, 2, "rows");
            try (Cluster cluster = ring.client(1, ConsistencyLevel.ALL);
                    Session session = cluster.connect("failures")) {
                for (int key = 0; key < ROWS; key++) {
                    session.execute("INSERT INTO rows (k, v) VALUES (?, ?)", key,
                            ("needle" + key + "needle ").repeat(20));
                }
            }
            ring.stop(2);
            int spoilt = spoil(ring.node(2).store(), "needle77needle");
            assertTrue(spoilt > 0, "places in the store");
            ring.start();
            try (Cluster cluster = client(ring, 2); Session session = cluster.connect("failures")) {
                assertThrows(DriverException.class, () ->
                        session.execute("SELECT v FROM rows WHERE k = 77"));
                int answered = 0;
                for (int key = 0; key < ROWS; key += 40) {
                    try {
                        session.execute("SELECT v FROM rows WHERE k = ?", key);
                        answered++;
                    } catch (DriverException beside) {
                        // In the same page.
                    }
                }
                assertTrue(answered > ROWS / 40 - 20, "other rows that are read: " + answered);
            }
            assertTrue(Files.readString(ring.node(2).log()).contains("CorruptSSTableException"));
            try (Cluster cluster = client(ring, 1); Session session = cluster.connect("failures")) {
                Row row = session.execute("SELECT v FROM rows WHERE k = 77").one();
                assertTrue(row.getString("v").startsWith("needle77needle"));
            }
            if (!Boolean.getBoolean("entresol.thorough")) {
                return;
            }
            assertThrows(AssertionError.class, () ->
                    ring.nodetool(2, "repair", "-full", "failures"), "a repair of what is damaged");
            ring.wipe(2);
            ring.start();
            ring.nodetool(2, "repair", "-full", "failures");
            assertEquals(ROWS, count(ring, 2, "rows"));
        }
    }

    /** Changes a byte of each place in a file where a text is. */
    private static int spoil(Path file, String text) throws IOException {
        byte[] wanted = text.getBytes(StandardCharsets.US_ASCII);
        byte[] all = Files.readAllBytes(file);
        int places = 0;
        try (RandomAccessFile written = new RandomAccessFile(file.toFile(), "rw")) {
            for (int at = 0; at + wanted.length <= all.length; at++) {
                if (all[at] == wanted[0] && java.util.Arrays.equals(all, at, at + wanted.length,
                        wanted, 0, wanted.length)) {
                    written.seek(at);
                    written.write('X');
                    places++;
                }
            }
        }
        return places;
    }
}
