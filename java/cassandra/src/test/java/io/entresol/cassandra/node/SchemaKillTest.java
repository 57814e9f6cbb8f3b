package io.entresol.cassandra.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** A node is killed right behind statements that change tables as a whole. */
class SchemaKillTest {
    private static final int ROWS = 500;
    private static final String DROPPED = "CREATE TABLE dropped (k int PRIMARY KEY, v text)"
            + " WITH memtable = 'entresol'";

    @Test
    void snapshotsAlterationsAndDropsSurviveAKillAndNothingComesBack() throws Exception {
        try (TestCluster node = new TestCluster("schema-node", 1)) {
            node.start();
            try (Cluster cluster = client(node); Session session = cluster.connect()) {
                session.execute("CREATE KEYSPACE kills WITH replication ="
                        + " {'class': 'SimpleStrategy', 'replication_factor': 1}");
                session.execute("USE kills");
                session.execute("CREATE TABLE altered (k int PRIMARY KEY, v text, w text)"
                        + " WITH memtable = 'entresol'");
                session.execute(DROPPED);
                for (int key = 0; key < ROWS; key++) {
                    session.execute("INSERT INTO altered (k, v, w) VALUES (?, 'v', 'w')", key);
                    session.execute("INSERT INTO dropped (k, v) VALUES (?, 'v')", key);
                }
                node.nodetool(1, "snapshot", "-t", "evening", "kills");
                session.execute("DELETE FROM altered WHERE k = 7");
                session.execute("ALTER TABLE altered ADD x text");
                session.execute("INSERT INTO altered (k, x) VALUES (1, 'x')");
                session.execute("ALTER TABLE altered DROP w");
                session.execute("INSERT INTO altered (k, v) VALUES (2, 'late')");
                session.execute("DROP TABLE dropped");
            }
            node.kill(1);
            node.start();
            try (Cluster cluster = client(node); Session session = cluster.connect("kills")) {
                List<Row> rows = session.execute("SELECT * FROM altered").all();
                assertEquals(ROWS - 1, rows.size());
                assertEquals(List.of("k", "v", "x"), rows.get(0).getColumnDefinitions().asList()
                        .stream().map(column -> column.getName()).toList());
                assertEquals("x", text(session, "x", 1));
                assertEquals("late", text(session, "v", 2));
                assertNull(cluster.getMetadata().getKeyspace("kills").getTable("dropped"));
                session.execute(DROPPED);
                assertEquals(List.of(), session.execute("SELECT * FROM dropped").all());
                session.execute("TRUNCATE altered");
            }
            node.kill(1);
            node.start();
            assertEquals(0, count(node));
            node.nodetool(1, "import", "kills", "altered", snapshot(node).toString());
            assertEquals(ROWS, count(node));
            assertTrue(node.ask(1, store -> store.absorb("kills", "altered")) > 0);
            node.kill(1);
            node.start();
            assertEquals(ROWS, count(node));
            node.awaitNoTable(1, "kills");
        }
    }

    private static Cluster client(TestCluster node) {
        return node.client(1, ConsistencyLevel.ONE);
    }

    private static String text(Session session, String column, int key) {
        return session.execute("SELECT " + column + " FROM altered WHERE k = " + key).one()
                .getString(0);
    }

    private static int count(TestCluster node) {
        try (Cluster cluster = client(node); Session session = cluster.connect("kills")) {
            return session.execute("SELECT * FROM altered").all().size();
        }
    }

    private static Path snapshot(TestCluster node) throws Exception {
        try (Stream<Path> files = Files.walk(node.node(1).root().resolve("data/kills"))) {
            return files.filter(file -> file.endsWith("snapshots/evening")
                    && file.toString().contains("/altered-")).findFirst().orElseThrow();
        }
    }
}
