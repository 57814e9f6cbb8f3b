package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Two grids that back each other up. */
class SiteTest {
    /** How often the other site is asked, each time by a request that takes its while. */
    private static final int PATIENCE = 20_000;

    @Test
    void changesOfEachSiteReachTheOther() throws Exception {
        TestGrid london = new TestGrid();
        TestGrid york = new TestGrid(TestGrid.freeOffset(london.offset + 2 * Ports.STEP));
        CompletableFuture<TestGrid.Ran> started = CompletableFuture.supplyAsync(() ->
                start(york, "NYC", "LON=" + bridge(london)));
        start(london, "LON", "NYC=" + bridge(york)).succeeded();
        started.join().succeeded();
        sitesThatAreNotTheOtherAreRefused(london);
        deploy(london, "NYC");
        deploy(york, "LON");
        put(london, "key", "from London");
        put(york, "other key", "from York");
        awaitValue(york, "key", "from London");
        awaitValue(london, "other key", "from York");
        String list = york.ask("list").succeeded().out();
        assertTrue(list.contains("flash,partitioned,two-sites"), list);
        for (TestGrid grid : new TestGrid[] {london, york}) {
            grid.stop().succeeded();
            grid.remove();
        }
    }

    /** The cache was deployed, and no change went anywhere. */
    private static void sitesThatAreNotTheOtherAreRefused(TestGrid london) {
        for (String wrong : new String[] {"PAR", "LON"}) {
            TestGrid.Ran refused = london.ask("deploy", "both", "--template", "two-sites",
                    "--other-site", wrong, "--capacity", "64MiB", "--memory", "32MiB");
            assertEquals(2, refused.status(), refused.out());
            assertTrue(refused.err().contains("is '" + wrong + "'"), refused.err());
            assertTrue(refused.err().contains("name that: --other-site NYC"), refused.err());
        }
    }

    private static TestGrid.Ran start(TestGrid grid, String site, String other) {
        try {
            return grid.start("--site", site, "--other-site", other);
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    private static String bridge(TestGrid grid) {
        return "127.0.0.1:" + grid.ports().bridge();
    }

    private static void deploy(TestGrid grid, String other) {
        grid.ask("deploy", "both", "--template", "two-sites", "--other-site", other,
                "--encoding", "text", "--capacity", "64MiB", "--memory", "32MiB").succeeded();
    }

    private static void put(TestGrid grid, String key, String value) {
        grid.rest().post(path(key), "text/plain", value);
    }

    private static String path(String key) {
        return Rest.cache("both") + "/" + Rest.encode(key);
    }

    /** Changes travel behind the acknowledgement, and none before the sites have met. */
    private static void awaitValue(TestGrid grid, String key, String value) {
        Rest rest = grid.rest();
        for (int asked = 0; !rest.exists(path(key)); asked++) {
            assertTrue(asked < PATIENCE, key + " did not come");
        }
        assertEquals(value, rest.getText(path(key)));
    }
}
