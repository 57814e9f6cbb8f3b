package io.entresol.cassandra.node;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.driver.core.ConsistencyLevel;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * A node of a ring is killed while rows of tables on flash go between nodes: by a repair, and while
 * a node joins or leaves. {@code entresol.seed}, printed, chooses who is killed in a repair; more
 * rounds: {@code -Dentresol.stream.rounds=N}.
 */
@Tag("minutes")
class StreamKillTest {
    private static final long SEED = Long.getLong("entresol.seed", 42);
    private static final int ROUNDS = Integer.getInteger("entresol.stream.rounds",
            Boolean.getBoolean("entresol.thorough") ? 4 : 2);
    private static final int NODES = 3;
    private static final long LOOK_NANOS = 2_000_000;
    private static final int MOST_LOOKS = 60_000;
    /** The first thing that a node says of rows that go to or from it. */
    private static final String STREAMS = "Prepare completed";

    private final Random random = new Random(SEED);

    @Test
    void aKillInTheMiddleOfARepairLosesNoRow() throws Exception {
        System.out.println("entresol.seed=" + SEED + " entresol.stream.rounds=" + ROUNDS);
        try (TestCluster ring = new TestCluster("stream-repair", NODES)) {
            slow(ring, 1, NODES);
            ring.start();
            RingRows rows = new RingRows(ring);
            rows.make(NODES, "entresol");
            rows.fill(ConsistencyLevel.ALL);
            for (int round = 0; round < ROUNDS; round++) {
                int behind = NODES - round % 2;
                int killed = random.nextInt(NODES) + 1;
                boolean validating = round % 2 == 1;
                ring.kill(behind);
                rows.change(ConsistencyLevel.ONE);
                ring.start();
                System.out.println("killed: node " + killed + " while a repair of node " + behind
                        + (validating ? " validates" : " streams"));
                long streams = said(ring, killed);
                CompletableFuture<Void> repair = during(() -> repair(ring, behind));
                await(repair, "a repair", () -> validating
                        ? !ring.tables(killed, RingRows.KEYSPACE).isEmpty()
                        : said(ring, killed) > streams);
                killAndStart(ring, killed);
                ended(repair);
                settle(ring, rows, NODES);
            }
        }
    }

    @Test
    void aKillInTheMiddleOfJoiningOrLeavingLosesNoRow() throws Exception {
        System.out.println("entresol.seed=" + SEED);
        try (TestCluster ring = new TestCluster("stream-joined", NODES - 1)) {
            slow(ring, 1, NODES - 1);
            ring.start();
            RingRows rows = new RingRows(ring);
            rows.make(2, "entresol");
            rows.fill(ConsistencyLevel.ALL);
            ring.makeJoining(NODES);
            slow(ring, NODES, NODES);
            CompletableFuture<Void> joining = during(ring::start);
            await(joining, "joining", () -> said(ring, NODES) > 0);
            killAndStart(ring, NODES);
            ended(joining);
            settle(ring, rows, NODES);

            rows.change(ConsistencyLevel.ALL);
            long streams = said(ring, NODES);
            CompletableFuture<Void> leaving = during(() ->
                    ring.nodetool(NODES, "decommission", "--force"));
            await(leaving, "leaving", () -> said(ring, NODES) > streams);
            killAndStart(ring, NODES);
            ended(leaving);
            settle(ring, rows, NODES);
        }
    }

    /** The ring answers again as if nothing had been, and nothing is left of what was under way. */
    private static void settle(TestCluster ring, RingRows rows, int nodes) throws Exception {
        for (int number = 1; number <= nodes; number++) {
            repair(ring, number);
        }
        for (int number = 1; number <= nodes; number++) {
            rows.check(number);
            ring.awaitNoTable(number, RingRows.KEYSPACE);
        }
    }

    private static void repair(TestCluster ring, int number) throws Exception {
        ring.nodetool(number, "repair", "-full", RingRows.KEYSPACE);
    }

    /** So that a stream takes longer than it takes to notice it. */
    private static void slow(TestCluster ring, int first, int last) throws IOException {
        for (int number = first; number <= last; number++) {
            ring.edit(number, "dynamic_snitch: false", """
                    dynamic_snitch: false
                    stream_throughput_outbound: 1MiB/s
                    entire_sstable_stream_throughput_outbound: 1MiB/s""");
        }
    }

    private static void killAndStart(TestCluster ring, int number) throws Exception {
        ring.kill(number);
        ring.start();
    }

    /** How often a node has said that rows go to or from it. */
    private static long said(TestCluster ring, int number) throws IOException {
        if (!Files.exists(ring.node(number).log())) {
            return 0;
        }
        try (Stream<String> lines = Files.lines(ring.node(number).log())) {
            return lines.filter(line -> line.contains(STREAMS)).count();
        }
    }

    private static CompletableFuture<Void> during(Action action) {
        return CompletableFuture.runAsync(() -> {
            try {
                action.perform();
            } catch (Exception failure) {
                throw new CompletionException(failure);
            }
        });
    }

    private static void await(CompletableFuture<Void> action, String name, Moment moment)
            throws Exception {
        for (int looks = 0; !moment.isThere(); looks++) {
            assertFalse(action.isDone(), () -> name + " ended before it was noticed");
            assertTrue(looks < MOST_LOOKS, () -> name + " never began to stream");
            LockSupport.parkNanos(LOOK_NANOS);
        }
        assertFalse(action.isDone(), () -> name + " had ended before the kill");
    }

    /** Nobody knows how what a kill interrupts ends. */
    private static void ended(CompletableFuture<Void> action) {
        action.handle((done, failure) -> List.of()).join();
    }

    private interface Action {
        void perform() throws Exception;
    }

    private interface Moment {
        boolean isThere() throws Exception;
    }
}
