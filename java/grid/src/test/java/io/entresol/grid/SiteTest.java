package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** Two grids that back each other up. */
class SiteTest {
    @Test
    void changesOfEachSiteReachTheOther() throws Exception {
        TestGrid london = new TestGrid();
        TestGrid york = new TestGrid(TestGrid.freeOffset(london.offset + 2 * Ports.STEP));
        CompletableFuture<TestGrid.Ran> started = CompletableFuture.supplyAsync(() ->
                start(york, "NYC", "LON=" + bridge(london, 0) + "," + bridge(london, 1)));
        start(london, "LON", "NYC=" + bridge(york, 0), "--nodes", "2").succeeded();
        started.join().succeeded();
        // That which does not speak with the other site said that it belongs to none.
        for (int node = 0; node < 2; node++) {
            sitesThatAreNotTheOtherAreRefused(london.rest(node).server());
        }
        deploy(london.rest(1).server(), "NYC");
        deploy(york.server(), "LON");
        put(london, "key", "from London");
        put(york, "other key", "from York");
        awaitValue(york, "key", "from London");
        awaitValue(london, "other key", "from York");
        String list = york.ask("list").succeeded().out();
        assertTrue(list.contains("flash,partitioned,two-sites"), list);
        assertFalse(list.contains("site LON"), list);
        aSiteThatWasKilledGetsWhatChangedMeanwhile(london, york, () ->
                start(york, "NYC", "LON=" + bridge(london, 0) + "," + bridge(london, 1)));
        for (TestGrid grid : new TestGrid[] {london, york}) {
            grid.stop().succeeded();
            grid.remove();
        }
    }

    /**
     * It joined the other before it had come to the cache, was told of a change, and said that
     * there is no such cache: the other sent nothing from then on, and was said to be healthy.
     */
    private static void aSiteThatWasKilledGetsWhatChangedMeanwhile(TestGrid london, TestGrid york,
            Supplier<TestGrid.Ran> start) {
        // A node makes its caches in the order of their names.
        for (String first : new String[] {"a", "aa", "aaa"}) {
            york.ask("deploy", first, "--capacity", "64MiB", "--memory", "32MiB").succeeded();
        }
        ProcessHandle node = new NodeFolder(york.folder.resolve("node")).process().orElseThrow();
        node.destroyForcibly();
        TestGrid.awaitEnd(node);
        TestGrid.await(() -> london.ask("list").succeeded().out().contains("site NYC away"),
                "the other site was not missed");
        put(london, "meanwhile", "from London");
        start.get().succeeded();
        awaitValue(york, "meanwhile", "from London");
        put(london, "afterwards", "from London");
        awaitValue(york, "afterwards", "from London");
        for (String said : new String[] {london.ask("list").succeeded().out(),
            london.ask("info", "both").succeeded().out()}) {
            assertFalse(said.contains("offline") || said.contains("away"), said);
        }
    }

    /** The cache was deployed, and no change went anywhere. */
    private static void sitesThatAreNotTheOtherAreRefused(String server) {
        for (String wrong : new String[] {"PAR", "LON"}) {
            TestGrid.Ran refused = deployed(server, wrong);
            assertEquals(2, refused.status(), refused.out());
            assertTrue(refused.err().contains("is '" + wrong + "'"), refused.err());
            assertTrue(refused.err().contains("name that: --other-site NYC"), refused.err());
        }
    }

    private static TestGrid.Ran start(TestGrid grid, String site, String other,
            String... more) {
        List<String> all = new ArrayList<>(List.of("--site", site, "--other-site", other));
        all.addAll(List.of(more));
        try {
            return grid.start(all.toArray(String[]::new));
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    /** Any of a site's nodes may be the one that speaks with the other. */
    private static String bridge(TestGrid grid, int node) {
        return "127.0.0.1:" + new Ports(grid.offset + node * Ports.STEP).bridge();
    }

    private static void deploy(String server, String other) {
        deployed(server, other).succeeded();
    }

    private static TestGrid.Ran deployed(String server, String other) {
        return TestGrid.inside("deploy", "both", "--template", "two-sites", "--other-site", other,
                "--encoding", "text", "--capacity", "64MiB", "--memory", "32MiB",
                "--server", server);
    }

    private static void put(TestGrid grid, String key, String value) {
        grid.rest().post(path(key), "text/plain", value);
    }

    private static String path(String key) {
        return Rest.cache("both") + "/" + Rest.encode(key);
    }

    /**
     * Changes travel behind the acknowledgement, and none before the sites have met. Those that
     * waited for a site came 0.2 to 10 s after its start, in six runs.
     */
    private static void awaitValue(TestGrid grid, String key, String value) {
        Rest rest = grid.rest();
        TestGrid.await(() -> rest.exists(path(key)), key + " did not come");
        assertEquals(value, rest.getText(path(key)));
    }
}
