package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;

/**
 * Recovering caches that are deployed while one of two nodes is away. A test that leaves the
 * cluster as it was comes first, because the next test goes on with it.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class AwayTest {
    private static final int ENTRIES = 20;

    private TestGrid grid;
    private boolean whole;

    @BeforeEach
    void start() throws Exception {
        if (grid == null) {
            grid = new TestGrid();
            grid.startBoth().succeeded();
            // A node finds by it that the cluster has caches.
            grid.ask("deploy", "plain", "--template", "ram").succeeded();
        }
        whole = false;
    }

    @AfterEach
    void end() throws Exception {
        if (!whole) {
            remove();
        }
    }

    @AfterAll
    void remove() throws Exception {
        if (grid == null) {
            return;
        }
        for (int number = 0; number < 2; number++) {
            if (grid.member(number).process().isPresent()) {
                grid.kill(number);
            }
        }
        grid.remove();
        grid = null;
    }

    /**
     * The one that had it started last and dropped it, and its acknowledged entries were in a file
     * that nobody read; or it waited for the other to start a cache that it never heard of.
     */
    @Test
    @Order(1)
    void aCacheComesBackWithANodeThatAloneHadItWhicheverStartsFirst() throws Exception {
        grid.leave(1);
        deploy("alone", "64MiB", "first");
        grid.kill(0);
        grid.startMemberAlone(1).succeeded();
        grid.startMember(0).succeeded();
        assertHas("alone", "first");

        grid.leave(1);
        deploy("second", "64MiB", "second");
        grid.kill(0);
        startBoth();
        assertHas("alone", "first");
        assertHas("second", "second");
        for (int number = 0; number < 2; number++) {
            String saved = Files.readString(
                    grid.member(number).server().resolve("data/caches.xml"));
            for (String name : new String[] {"plain", "alone", "second"}) {
                assertTrue(saved.contains("\"" + name + "\""), saved);
            }
        }
        leaveWhole("alone", "second");
    }

    /**
     * Other options than those of the former one kept the node that was away from starting; after a
     * death of all the one with the new cache gave up.
     */
    @Test
    @Order(1)
    void aCacheThatWasDeployedAnewIsTheNewOneForANodeThatWasAway() throws Exception {
        deploy("same", "64MiB", "former");
        grid.leave(1);
        grid.ask("undeploy", "same").succeeded();
        deploy("same", "80MiB", "new");
        grid.startMember(1).succeeded();
        assertHas("same", "new");

        grid.leave(1);
        grid.ask("undeploy", "same").succeeded();
        deploy("same", "64MiB", "newest");
        grid.kill(0);
        startBoth();
        assertHas("same", "newest");
        leaveWhole("same");
    }

    /** Each start waited for them anew, and no command dropped it. */
    @Test
    @Order(1)
    void aCacheWhoseMembersAreGoneForEverCanBeUndeployed() throws Exception {
        String xml = grid.ask("deploy", "orphan", "--template", "flash,partitioned-with-backup",
                "--recovery", "--capacity", "64MiB", "--memory", "32MiB", "--encoding", "text",
                "--dry-run").succeeded().out();
        grid.rest().post(Rest.cache("orphan"), "application/xml",
                xml.replace("recovery=\"true\"", "recovery=\"true\" recovery-timeout=\"1s\""));
        grid.put("orphan", ENTRIES, "lost");
        grid.kill(0);
        grid.kill(1);
        grid.startMemberAlone(0).succeeded();
        assertTrue(Files.exists(store(0, "orphan")));
        grid.ask("list").succeeded();
        grid.ask("undeploy", "orphan").succeeded();
        assertGone(0);
        // It is found after all, and waits for nobody.
        grid.startMember(1).succeeded();
        assertGone(0);
        assertGone(1);
        TestGrid.Ran again = grid.ask("undeploy", "orphan");
        assertTrue(again.err().contains("there is no cache 'orphan'"), again.err());
        deploy("orphan", "64MiB", "new");
        assertHas("orphan", "new");
        leaveWhole("orphan");
    }

    /** It waited for ten minutes, and served nobody. */
    @Test
    @Order(1)
    void aCacheThatANodeWaitsInCanBeUndeployedByAnother() throws Exception {
        deploy("orphan", "64MiB", "lost");
        grid.kill(0);
        grid.kill(1);
        TestGrid.remove(grid.member(1).root());
        grid.startMemberAlone(1).succeeded();
        CompletableFuture<TestGrid.Ran> waiting =
                CompletableFuture.supplyAsync(() -> grid.startMember(0));
        while (!TestGrid.isOver(waiting) && !Caches.names(grid.rest(1)).contains("orphan")) {
            Thread.onSpinWait();
        }
        assertFalse(waiting.isDone(), () -> "it did not wait: " + waiting.join());
        TestGrid.inside("undeploy", "orphan", "--server", grid.rest(1).server()).succeeded();
        waiting.join().succeeded();
        assertGone(0);
    }

    private void assertGone(int number) throws Exception {
        assertFalse(Caches.names(grid.rest(number)).contains("orphan"));
        assertFalse(Files.exists(store(number, "orphan")));
        assertFalse(Files.readString(grid.member(number).server().resolve("data/caches.xml"))
                .contains("orphan"));
    }

    private Path store(int number, String name) {
        return grid.member(number).server().resolve("data/" + name + "/entresol/entresol.data");
    }

    /** The launcher listened to the first one, which waited ten minutes for the second. */
    @Test
    @Order(2)
    void aNodeIsNamedThatACacheDoesNotRunOnAndOneThatCannotStartThoughAnotherWaits()
            throws Exception {
        aDeploymentNamesTheNodesThatTheCacheDoesNotRunOn();
        deploy("kept", "64MiB", "value");
        grid.kill(0);
        grid.kill(1);
        Files.writeString(grid.member(1).server().resolve("data/caches.xml"), "<torn");
        TestGrid.Ran ran = grid.startBoth();
        assertEquals(2, ran.status());
        assertTrue(ran.err().contains("node node-1 did not start"), ran.err());
        assertEquals(Optional.empty(), grid.member(0).process());
    }

    /** Infinispan answered for the node that was asked, and the cache had a copy less. */
    private void aDeploymentNamesTheNodesThatTheCacheDoesNotRunOn() throws Exception {
        // Where the folder of the store is to be.
        Files.createFile(grid.member(1).server().resolve("data/partial"));
        TestGrid.Ran ran = grid.ask("deploy", "partial", "--capacity", "64MiB", "--memory",
                "32MiB");
        assertEquals(2, ran.status());
        assertTrue(ran.err().contains("does not run on node-1"), ran.err());
        assertFalse(Caches.names(grid.rest()).contains("partial"));
    }

    /**
     * Who stops a cluster waits for all caches that start; this one would for ten minutes, and did
     * where the launcher's {@code stop} was not used, which had nodes give them up before it.
     */
    @Test
    @Order(3)
    void aClusterIsStoppedByRestThoughACacheWaitsForAMemberThatIsGone() throws Exception {
        deploy("lost", "64MiB", "value");
        grid.kill(0);
        grid.kill(1);
        TestGrid.remove(grid.member(1).root());
        grid.startMemberAlone(1).succeeded();
        CompletableFuture<TestGrid.Ran> waiting =
                CompletableFuture.supplyAsync(() -> grid.startMember(0));
        Rest other = grid.rest(1);
        while (!TestGrid.isOver(waiting) && !Caches.names(other).contains("lost")) {
            Thread.onSpinWait();
        }
        assertFalse(waiting.isDone(), () -> "it did not wait: " + waiting.join());
        ProcessHandle serving = grid.member(1).process().orElseThrow();
        other.post("/v2/cluster?action=stop", null, "");
        TestGrid.awaitEnd(serving);
        assertEquals(2, waiting.join().status());
        assertTrue(Files.exists(grid.member(0).server()
                .resolve("data/lost/entresol/entresol.data")));
    }

    /** The second one first: it waits for the other, or serves before that one is there. */
    private void startBoth() {
        CompletableFuture<TestGrid.Ran> second =
                CompletableFuture.supplyAsync(() -> grid.startMember(1));
        grid.startMember(0).succeeded();
        second.join().succeeded();
    }

    private void leaveWhole(String... deployed) {
        for (String name : deployed) {
            grid.ask("undeploy", name).succeeded();
        }
        whole = true;
    }

    private void deploy(String name, String capacity, String value) {
        grid.deployRecovering(name, capacity);
        grid.put(name, ENTRIES, value);
    }

    private void assertHas(String name, String value) {
        for (int number = 0; number < 2; number++) {
            Rest rest = grid.rest(number);
            assertTrue(Caches.names(rest).containsAll(List.of("plain", name)),
                    Caches.names(rest) + " at node " + number);
            for (int key = 0; key < ENTRIES; key++) {
                assertEquals(value + key, rest.getText(Rest.cache(name) + "/" + key));
            }
        }
    }
}
