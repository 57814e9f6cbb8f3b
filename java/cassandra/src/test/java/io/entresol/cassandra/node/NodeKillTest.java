package io.entresol.cassandra.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.exceptions.DriverException;
import java.nio.file.Files;
import java.time.LocalTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLongArray;
import org.junit.jupiter.api.Test;

/**
 * A node is killed under a ledger of acknowledged writes, and started again. More rounds:
 * {@code -Dentresol.kill.rounds=N}; {@code entresol.seed}, printed, chooses the moments.
 */
class NodeKillTest {
    private static final long SEED = Long.getLong("entresol.seed", 42);
    private static final int ROUNDS = Integer.getInteger("entresol.kill.rounds", 2);
    private static final int THREADS = 4;
    /** Rows of an update. */
    private static final int ROWS = 3;
    private static final int BEFORE_TRUNCATION = 50;
    private static final int AFTER_TRUNCATION = 5;
    /** What acknowledged updates survive, in turn. */
    private static final List<String> LEVELS = List.of(
            "commitlog_sync: periodic\ncommitlog_sync_period: 10000ms\n",
            "commitlog_sync: batch\n",
            "commitlog_sync: group\ncommitlog_sync_group_window: 10ms\n");
    /** Who keeps them, in turn. */
    private static final List<String> LOGS = List.of("journal_size: 32MiB\n",
            "journal_size: 32MiB\n        commit_log: write\n",
            "journal_size: 32MiB\n        commit_log: skip\n");

    private final Random random = new Random(SEED);
    /** How many updates of each partition were acknowledged. */
    private final AtomicLongArray ledger = new AtomicLongArray(THREADS);

    @Test
    void acknowledgedUpdatesSurviveKillsWholeAndTruncatedRowsStayAway() throws Exception {
        System.out.println("entresol.seed=" + SEED + " entresol.kill.rounds=" + ROUNDS);
        try (TestNode node = new TestNode("kill-node")) {
            node.make();
            create(node);
            for (int round = 0; round < ROUNDS; round++) {
                writeAndKill(node, round);
                turn(node, LEVELS, round);
                if (round % 2 == 1) {
                    turn(node, LOGS, round / 2);
                }
                node.run("start");
                System.out.println("serves after ms: " + servedAfter(node));
                check(node, "after kill " + round);
                if (round % 3 == 1) {
                    assertEquals("stopped: 1", node.run("stop").strip());
                    node.run("start");
                    check(node, "after the stop of round " + round);
                }
            }
            asked(node);
        }
    }

    /** Between a kill and the start after it, another value takes the place of one. */
    private static void turn(TestNode node, List<String> values, int round) throws Exception {
        node.edit(values.get(round % values.size()), values.get((round + 1) % values.size()));
    }

    /** From the start of Java to the first client that is heard. */
    private static long servedAfter(TestNode node) throws Exception {
        String begun = "";
        String served = "";
        for (String line : Files.readAllLines(node.folder.log())) {
            begun = line.contains("Configuration location: ") ? line : begun;
            served = line.contains("Starting listening for CQL clients") ? line : served;
        }
        return ChronoUnit.MILLIS.between(time(begun), time(served));
    }

    private static LocalTime time(String line) {
        return LocalTime.parse(line.replaceFirst(".* (..:..:..),(...) .*", "$1.$2"));
    }

    private static void create(TestNode node) throws Exception {
        node.run("cql", "-e", """
                CREATE KEYSPACE kills
                    WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
                USE kills;
                CREATE TABLE updates (thread int, number bigint, value text, count bigint static,
                    PRIMARY KEY (thread, number)) WITH memtable = 'entresol';
                CREATE TABLE truncated (key int PRIMARY KEY, value text)
                    WITH memtable = 'entresol';
                CREATE TABLE emptied (key int PRIMARY KEY, value text)
                    WITH memtable = 'entresol';
                """);
    }

    private void writeAndKill(TestNode node, int round) throws Exception {
        try (Cluster cluster = node.client(); Session session = cluster.connect("kills")) {
            // Threads write while tables go.
            CountDownLatch enough = new CountDownLatch(500 + random.nextInt(2500));
            List<Thread> writers = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                int own = thread;
                Thread writer = new Thread(() -> write(session, own, enough));
                writers.add(writer);
                writer.start();
            }
            replaceTables(session, round);
            enough.await();
            truncate(session, round);
            node.kill();
            for (Thread writer : writers) {
                writer.join();
            }
        }
    }

    /** Updates of several rows of a partition, until the node is gone. */
    private void write(Session session, int thread, CountDownLatch enough) {
        PreparedStatement update = session.prepare("BEGIN UNLOGGED BATCH "
                + "INSERT INTO updates (thread, count) VALUES (:t, :count); "
                + "INSERT INTO updates (thread, number, value) VALUES (:t, :a, :x); "
                + "INSERT INTO updates (thread, number, value) VALUES (:t, :b, :y); "
                + "INSERT INTO updates (thread, number, value) VALUES (:t, :c, :z); APPLY BATCH");
        try {
            while (true) {
                long number = ledger.get(thread) * ROWS;
                session.execute(update.bind().setInt("t", thread)
                        .setLong("count", ledger.get(thread) + 1).setLong("a", number)
                        .setLong("b", number + 1).setLong("c", number + 2)
                        .setString("x", value(thread, number))
                        .setString("y", value(thread, number + 1))
                        .setString("z", value(thread, number + 2)));
                ledger.incrementAndGet(thread);
                enough.countDown();
            }
        } catch (DriverException killed) {
            // Nobody knows whether the last update is there.
        }
    }

    /** A dropped table, and another one under its name. */
    private static void replaceTables(Session session, int round) {
        String columns = " (key int PRIMARY KEY, value text) WITH memtable = 'entresol'";
        session.execute("CREATE TABLE dropped_" + round + columns);
        for (int key = 0; key < BEFORE_TRUNCATION; key++) {
            session.execute("INSERT INTO dropped_" + round + " (key, value) VALUES (?, 'old')",
                    key);
        }
        session.execute("DROP TABLE dropped_" + round);
        session.execute("CREATE TABLE dropped_" + round + columns);
    }

    /** The last thing before a kill. */
    private static void truncate(Session session, int round) {
        for (int key = 0; key < BEFORE_TRUNCATION; key++) {
            session.execute("INSERT INTO truncated (key, value) VALUES (?, 'old')", key);
            session.execute("INSERT INTO emptied (key, value) VALUES (?, 'old')", key);
        }
        session.execute("TRUNCATE truncated");
        for (int key = 0; key < AFTER_TRUNCATION; key++) {
            session.execute("INSERT INTO truncated (key, value) VALUES (?, ?)", key, "" + round);
        }
        session.execute("TRUNCATE emptied");
    }

    private void check(TestNode node, String when) {
        try (Cluster cluster = node.client(); Session session = cluster.connect("kills")) {
            for (int thread = 0; thread < THREADS; thread++) {
                checkUpdates(session, thread, when);
            }
            for (int round = 0; round < ROUNDS; round++) {
                boolean made = cluster.getMetadata().getKeyspace("kills")
                        .getTable("dropped_" + round) != null;
                assertEquals(0, !made ? 0 : session.execute("SELECT * FROM dropped_" + round)
                        .all().size(), when + ": rows of a dropped table");
            }
            assertEquals(List.of(), session.execute("SELECT * FROM emptied").all(), when);
            List<Row> rows = session.execute("SELECT * FROM truncated").all();
            assertEquals(AFTER_TRUNCATION, rows.size(), when + ": rows since the truncation");
            rows.forEach(row -> assertTrue(!row.getString("value").equals("old"), when));
        }
    }

    private void checkUpdates(Session session, int thread, String when) {
        long count = 0;
        long said = 0;
        for (Row row : session.execute("SELECT * FROM updates WHERE thread = ?", thread)) {
            assertEquals(count, row.getLong("number"), when);
            assertEquals(value(thread, count), row.getString("value"), when);
            said = row.getLong("count");
            count++;
        }
        long acknowledged = ledger.get(thread);
        String found = when + ", thread " + thread + ": " + count + " rows, " + acknowledged
                + " updates acknowledged";
        assertEquals(0, count % ROWS, found + ": half an update");
        assertEquals(count / ROWS, said, found + ": half an update, " + said);
        assertTrue(count / ROWS >= acknowledged, found);
        assertTrue(count / ROWS <= acknowledged + 1, found);
        ledger.set(thread, count / ROWS);
    }

    /** What people see of it. */
    private void asked(TestNode node) throws Exception {
        String status = node.run("status", "--json");
        assertTrue(status.contains("\"state\":\"serves\""), status);
        String count = node.run("cql", "--json", "-e",
                "SELECT count FROM kills.updates WHERE thread = 0 LIMIT 1");
        assertEquals("{\"count\":" + ledger.get(0) + "}", count.strip());
        assertTrue(node.run("nodetool", "info").contains("Native Transport active: true"));
    }

    /** Some are larger than a part of a row. */
    private static String value(int thread, long number) {
        int times = number % 97 == 0 ? 3_000 : 1 + (int) (number % 20);
        return (thread + ":" + number + " ").repeat(times);
    }
}
