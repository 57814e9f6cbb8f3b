package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.infinispan.client.hotrod.RemoteCache;
import org.infinispan.client.hotrod.RemoteCacheManager;
import org.infinispan.client.hotrod.configuration.ConfigurationBuilder;
import org.infinispan.commons.marshall.UTF8StringMarshaller;
import org.junit.jupiter.api.Test;

/** Nodes that are told to stop while others go on, or together with others. */
class LeaveTest {
    private static final int NODES = 3;
    private static final int ENTRIES = 1500;

    /** Of three nodes two were told to stop a second apart: 1,025 of 3,000 entries were gone. */
    @Test
    void nodesThatLeaveOneAfterAnotherLoseNothing() throws Exception {
        TestGrid grid = new TestGrid();
        grid.start("--nodes", "" + NODES).succeeded();
        deploy(grid, "copied", "flash,partitioned-with-backup");
        deploy(grid, "alone", "flash,partitioned");
        deploy(grid, "lost", "ram,partitioned");
        for (String cache : new String[] {"copied", "alone", "lost"}) {
            put(grid, cache);
        }
        List<ProcessHandle> leaving = IntStream.of(1, 2)
                .mapToObj(number -> member(grid, number).process().orElseThrow()).toList();
        for (int number : new int[] {1, 2}) {
            TestGrid.Ran refused = TestGrid.program("stop", "--dir",
                    member(grid, number).root() + "");
            assertEquals(2, refused.status(), refused.out());
            assertTrue(refused.err().contains("cache alone keeps each entry on one node"),
                    refused.err());
            assertTrue(refused.err().contains("stop --cluster"), refused.err());
            assertTrue(refused.err().contains("--force"), refused.err());
        }
        assertAllThere(grid, "alone");
        grid.ask("undeploy", "alone").succeeded();
        leaving.forEach(TestGrid::awaitEnd);
        assertAllThere(grid, "copied");
        grid.stop().succeeded();
        grid.remove();
    }

    /** As by whoever shuts all machines down. */
    @Test
    void nodesThatAreAllToldToStopDoSoAsAClusterAndHaveAllEntriesAfterwards() throws Exception {
        TestGrid grid = new TestGrid();
        grid.startBoth().succeeded();
        deploy(grid, "alone", "flash,partitioned");
        put(grid, "alone");
        List<ProcessHandle> nodes = IntStream.range(0, 2)
                .mapToObj(number -> grid.member(number).process().orElseThrow()).toList();
        nodes.forEach(ProcessHandle::destroy);
        nodes.forEach(TestGrid::awaitEnd);
        grid.startBoth().succeeded();
        assertAllThere(grid, "alone");
        // One that is to leave all the same.
        TestGrid.program("stop", "--dir", grid.member(1).root() + "", "--force").succeeded();
        // The launcher refused, as the other one runs.
        String started = grid.startBoth().succeeded().out();
        assertTrue(started.contains("node node-0 runs already"), started);
        assertTrue(started.contains("node node-1 serves"), started);
        TestGrid.program("stop", "--dir", grid.folder + "/cluster").succeeded();
        grid.remove();
    }

    private static void deploy(TestGrid grid, String name, String template) {
        List<String> flash = template.startsWith("flash")
                ? List.of("--capacity", "64MiB", "--memory", "32MiB") : List.of();
        List<String> all = new ArrayList<>(List.of("deploy", name, "--template", template,
                "--encoding", "text"));
        all.addAll(flash);
        grid.ask(all.toArray(String[]::new)).succeeded();
    }

    private static NodeFolder member(TestGrid grid, int number) {
        return new NodeFolder(grid.folder.resolve("node/node-" + number));
    }

    private static void put(TestGrid grid, String name) {
        with(grid, name, cache -> {
            for (int key = 0; key < ENTRIES; key++) {
                cache.put("" + key, "value " + key);
            }
        });
    }

    private static void assertAllThere(TestGrid grid, String name) {
        with(grid, name, cache -> {
            long found = IntStream.range(0, ENTRIES)
                    .filter(key -> ("value " + key).equals(cache.get("" + key))).count();
            assertEquals(ENTRIES, found, name);
        });
    }

    private static void with(TestGrid grid, String name,
            Consumer<RemoteCache<String, String>> work) {
        try (RemoteCacheManager client = new RemoteCacheManager(new ConfigurationBuilder()
                .addServer().host("127.0.0.1").port(grid.ports().main())
                .marshaller(new UTF8StringMarshaller()).build())) {
            work.accept(client.getCache(name));
        }
    }
}
