package io.entresol.cassandra.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.driver.core.ConsistencyLevel;
import io.entresol.cassandra.StoreMXBean;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Rings whose tables are on flash, while nodes come, go and lose what they had. Rings of three nodes and
 * more, and more of it: {@code -Dentresol.thorough=true}. What takes minutes has a tag, and the gate passes
 * over it.
 */
class ClusterTest {
    private static final boolean LONG = Boolean.getBoolean("entresol.thorough");
    private static final int NODES = LONG ? 3 : 2;

    private static int[] all(int count) {
        return IntStream.rangeClosed(1, count).toArray();
    }

    private static void awaitNoTables(TestCluster ring, int... numbers) throws IOException {
        for (int number : numbers) {
            ring.awaitNoTable(number, RingRows.KEYSPACE);
        }
    }

    @Test
    void aWipedNodeHasAllRowsAgainAfterAFullRepair() throws Exception {
        try (TestCluster ring = new TestCluster("ring-wiped", NODES)) {
            ring.start();
            RingRows rows = new RingRows(ring);
            rows.make(NODES, "entresol");
            rows.fill(ConsistencyLevel.ALL);
            rows.check(all(NODES));
            ring.wipe(NODES);
            // The others learn what the node has never seen.
            rows.change(ConsistencyLevel.ONE);
            ring.start();
            assertEquals(0, rows.count(NODES), "a wiped node reads its own rows");
            ring.nodetool(NODES, "repair", "-full", RingRows.KEYSPACE);
            rows.check(all(NODES));
            awaitNoTables(ring, all(NODES));
            if (LONG) {
                for (int number : all(NODES)) {
                    ring.kill(number);
                    ring.start();
                }
                rows.check(all(NODES));
                awaitNoTables(ring, all(NODES));
            }
        }
    }

    @Tag("minutes")
    @Test
    void aNodeThatJoinsAndLeavesTakesAndGivesItsRows() throws Exception {
        int before = LONG ? NODES : 1;
        int joining = before + 1;
        try (TestCluster ring = new TestCluster("ring-joined", before)) {
            ring.start();
            RingRows rows = new RingRows(ring);
            rows.make(LONG ? 2 : 1, "entresol");
            rows.fill(ConsistencyLevel.ALL);
            ring.makeJoining(joining);
            CompletableFuture<Void> meanwhile = CompletableFuture.runAsync(() ->
                    rows.change(ConsistencyLevel.ALL));
            ring.start();
            meanwhile.get();
            rows.check(all(joining));
            assertTrue(rows.count(joining) > 0, "rows of the node that joined");
            long cleaned = 0;
            for (int number : all(before)) {
                cleaned += ring.ask(number, ClusterTest::cleanup);
                assertEquals(0, ring.ask(number, ClusterTest::cleanup), "at a second time");
            }
            assertTrue(cleaned > 0, "partitions that are cleaned up");
            rows.check(all(joining));
            awaitNoTables(ring, all(joining));
            rows.change(ConsistencyLevel.ALL);
            ring.nodetool(joining, "decommission", "--force");
            ring.remove(joining);
            rows.check(all(before));
            awaitNoTables(ring, all(before));
        }
    }

    private static long cleanup(StoreMXBean store) {
        return store.cleanup(RingRows.KEYSPACE, "rows");
    }

    @Tag("minutes")
    @Test
    void aNodeThatReplacesADeadOneHasItsRows() throws Exception {
        try (TestCluster ring = new TestCluster("ring-replaced", NODES)) {
            ring.start();
            RingRows rows = new RingRows(ring);
            rows.make(2, "entresol");
            rows.fill(ConsistencyLevel.ALL);
            String address = "127.0.0." + NODES + ":" + ring.node(NODES).ports().storage();
            ring.remove(NODES);
            int number = NODES + 1;
            NodeFolder node = ring.makeJoining(number);
            List<String> yaml = Files.readAllLines(node.yaml()).stream()
                    .filter(line -> !line.startsWith("initial_token")).toList();
            Files.write(node.yaml(), yaml);
            ring.addOption(number, "-Dcassandra.replace_address_first_boot=" + address);
            ring.start();
            int[] now = all(number);
            now[NODES - 1] = 1;
            rows.check(now);
            assertTrue(rows.count(number) > 0, "rows of the node that replaces another");
            rows.change(ConsistencyLevel.ALL);
            rows.check(now);
            awaitNoTables(ring, now);
        }
    }

    /** While other clients write. */
    @Test
    void aTableMovesToFlashAndBackOnAllNodes() throws Exception {
        try (TestCluster ring = new TestCluster("ring-moved", NODES)) {
            for (int number = 1; LONG && number <= NODES; number++) {
                unplug(ring, number);
            }
            ring.start();
            RingRows rows = new RingRows(ring);
            rows.make(NODES, "default");
            rows.fill(ConsistencyLevel.ALL);
            for (int number = 1; LONG && number <= NODES; number++) {
                ring.stop(number);
                plug(ring, number);
                ring.start();
                rows.change(ConsistencyLevel.ALL);
                rows.check(all(NODES));
            }
            rows.alter("entresol");
            CompletableFuture<Void> meanwhile = CompletableFuture.runAsync(() ->
                    rows.change(ConsistencyLevel.ALL));
            for (int number : all(NODES)) {
                assertTrue(ring.ask(number, store -> store.absorb(RingRows.KEYSPACE, "rows")) > 0);
            }
            meanwhile.get();
            rows.check(all(NODES));
            awaitNoTables(ring, all(NODES));
            ring.kill(NODES);
            ring.start();
            rows.check(all(NODES));
            CompletableFuture<Void> further = CompletableFuture.runAsync(() ->
                    rows.change(ConsistencyLevel.ALL));
            rows.alter("default");
            further.get();
            rows.check(all(NODES));
            for (int number = 1; LONG && number <= NODES; number++) {
                ring.stop(number);
                unplug(ring, number);
                ring.start();
                rows.change(ConsistencyLevel.ALL);
                rows.check(all(NODES));
            }
        }
    }

    static void unplug(TestCluster ring, int number) throws IOException {
        Path yaml = ring.node(number).yaml();
        String text = Files.readString(yaml);
        Files.writeString(yaml.resolveSibling("plugged"), text);
        Files.writeString(yaml, text.substring(0, text.indexOf("\nmemtable:\n") + 1));
    }

    static void plug(TestCluster ring, int number) throws IOException {
        Path yaml = ring.node(number).yaml();
        Files.writeString(yaml, Files.readString(yaml.resolveSibling("plugged")));
    }
}
