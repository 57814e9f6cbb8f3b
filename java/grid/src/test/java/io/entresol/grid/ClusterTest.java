package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.infinispan.client.hotrod.RemoteCache;
import org.infinispan.client.hotrod.RemoteCacheManager;
import org.infinispan.client.hotrod.configuration.ConfigurationBuilder;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.commons.marshall.UTF8StringMarshaller;
import org.junit.jupiter.api.Test;

/** Nodes of one machine as a cluster. */
class ClusterTest {
    private static final int NODES = 2;
    private static final int ENTRIES = 40;

    @Test
    void entriesWithoutBackupsAreAllThereAfterTheLauncherStoppedItsCluster() throws Exception {
        TestGrid grid = new TestGrid();
        String second = "127.0.0.1:" + new Ports(grid.offset + Ports.STEP).main();
        Process launcher = start(grid);
        try {
            refusedCachesAreOnNoNode(grid, second);
        } catch (AssertionError failure) {
            stop(launcher, grid);
            throw failure;
        }
        String deployed = grid.ask("deploy", "spread", "--capacity", "64MiB", "--memory", "32MiB",
                "--encoding", "text").succeeded().out();
        assertTrue(deployed.contains("each entry is on one of 2 nodes"), deployed);
        grid.put("spread", ENTRIES, "value ");
        Json info = Json.read(grid.ask("info", "spread", "--json").succeeded().out());
        List<Long> shares = info.at("nodes").asJsonList().stream()
                .map(node -> node.at("flash").at("entries").asLong()).toList();
        assertEquals(NODES, shares.size());
        assertTrue(shares.stream().allMatch(share -> share > 0), shares.toString());
        assertEquals(ENTRIES, shares.stream().mapToLong(Long::longValue).sum());
        TestGrid.Ran measured = grid.ask("bench", "--workload", "bigmemory", "--entries", "200",
                "--iterations", "20", "--rounds", "1", "--warm-up", "0", "--threads", "2",
                "--json");
        Json results = Json.read(measured.succeeded().out());
        assertEquals(NODES, results.at("nodes").asInteger());
        assertEquals(40, results.at("resp").at("mix").at("flash").at("median").at("operations")
                .asInteger());
        stop(launcher, grid);

        Process again = start(grid);
        Rest other = new Rest(second, null, null);
        for (int key = 0; key < ENTRIES; key++) {
            assertEquals("value " + key, other.getText(Rest.cache("spread") + "/" + key));
        }
        stop(again, grid);
        grid.remove();
    }

    /**
     * A cache that some nodes could not start stayed deployed, and ran on the others. The name is
     * that of the cache deployed next.
     */
    private static void refusedCachesAreOnNoNode(TestGrid grid, String second) throws Exception {
        Path taken = grid.member(1).server().resolve("data/spread/entresol/entresol.data");
        Files.createDirectories(taken.resolve("in its place"));
        for (String template : new String[] {"flash", "flash,partitioned-with-backup"}) {
            for (String server : new String[] {grid.server(), second}) {
                TestGrid.Ran refused = TestGrid.inside("deploy", "spread", "--template", template,
                        "--capacity", "64MiB", "--memory", "32MiB", "--server", server);
                assertEquals(2, refused.status(), refused.out());
                assertTrue(refused.err().contains("deployed on no node"), refused.err());
                assertEquals(List.of(), deployed(server));
            }
        }
        cachesThatRestMakesAreUndoneByTheNodes(grid, second);
        for (int number = 0; number < NODES; number++) {
            Path data = grid.member(number).server().resolve("data");
            assertFalse(Files.readString(data.resolve("caches.xml")).contains("spread"));
            assertFalse(Files.isRegularFile(data.resolve("spread/entresol/entresol.data")));
        }
        TestGrid.remove(taken);
    }

    /** They ran on the nodes that could start them, stayed deployed, and kept the name. */
    private static void cachesThatRestMakesAreUndoneByTheNodes(TestGrid grid, String second) {
        String xml = TestGrid.inside("deploy", "spread", "--capacity", "64MiB", "--memory",
                "32MiB", "--dry-run", "--server", second).succeeded().out();
        for (String server : new String[] {grid.server(), second}) {
            Rest rest = new Rest(server, null, null);
            try {
                rest.post(Rest.cache("spread"), "application/xml", xml);
            } catch (RefusedException refused) {
                // As the node that is asked is the one that cannot, or not.
            }
            TestGrid.await(() -> deployed(grid.server()).isEmpty() && deployed(second).isEmpty(),
                    "the nodes did not take the cache back that was made by " + server);
        }
    }

    @Test
    void recoveringCachesHaveAllEntriesAndWholeIndexesAfterAllNodesWereKilled() throws Exception {
        TestGrid grid = new TestGrid();
        String second = "127.0.0.1:" + new Ports(grid.offset + Ports.STEP).main();
        Process launcher = start(grid);
        deployOrders(grid);
        // Another one: nodes must not wait for each other in different caches.
        grid.deployRecovering("late", "64MiB");
        grid.put("late", ENTRIES, "value ");
        List<ProcessHandle> nodes = IntStream.range(0, NODES)
                .mapToObj(number -> grid.member(number).process().orElseThrow()).toList();
        nodes.forEach(ProcessHandle::destroyForcibly);
        for (ProcessHandle node : nodes) {
            TestGrid.awaitEnd(node);
        }
        launcher.waitFor();

        Process again = start(grid);
        assertRecovered(grid, second);
        aNodeThatWasLeftAloneServesItsClientsAgainOnceTheOtherIsBack(grid, second);
        // The folders of this test have what the next one needs; starting others takes long.
        undeployedCachesAreForgottenByANodeThatWasAway(grid, second);
        TestGrid.program("stop", "--dir", grid.folder + "/cluster").succeeded();
        again.waitFor();
        grid.remove();
    }

    /** One of two is half: the other is degraded. */
    private static void aNodeThatWasLeftAloneServesItsClientsAgainOnceTheOtherIsBack(
            TestGrid grid, String second) {
        try (RemoteCacheManager client = new RemoteCacheManager(new ConfigurationBuilder()
                .addServer().host("127.0.0.1").port(grid.ports().main())
                .marshaller(new UTF8StringMarshaller()).build())) {
            RemoteCache<String, String> late = client.getCache("late");
            assertEquals("value 1", late.get("1"));
            grid.kill(1);
            grid.startMember(1).succeeded();
            assertRecovered(grid, second);
            for (int key = 0; key < ENTRIES; key++) {
                assertEquals("value " + key, late.get("" + key));
            }
        }
    }

    private static void assertRecovered(TestGrid grid, String second) {
        // The first thing that anybody asks each node.
        for (String server : new String[] {second, grid.server()}) {
            assertEquals("found,total\n20,190\nname\norder 7\n", TestGrid.inside("sql", "--csv",
                    "--server", server,
                    "select count(*) found, sum(price) total from kept where price < 20",
                    "select name from kept where price = 7").succeeded().out());
        }
        Rest other = new Rest(second, null, null);
        for (int key = 0; key < ENTRIES; key++) {
            assertEquals("order " + key, Json.read(other.getText(Rest.cache("kept") + "/" + key))
                    .at("name").asString());
            assertEquals("value " + key, other.getText(Rest.cache("late") + "/" + key));
        }
    }

    /** Of the two nodes the second is away: while the first goes on, then until all are dead. */
    private static void undeployedCachesAreForgottenByANodeThatWasAway(TestGrid grid,
            String second) throws Exception {
        grid.deployRecovering("early", "64MiB");
        grid.deployRecovering("replaced", "64MiB");
        grid.leave(1);
        grid.ask("undeploy", "early").succeeded();
        grid.ask("undeploy", "replaced").succeeded();
        // A disk that was replaced meanwhile tells nobody what was undeployed.
        TestGrid.remove(grid.member(1).server().resolve("data/replaced"));
        grid.startMember(1).succeeded();
        assertEquals(List.of("kept", "late"), deployed(second));
        // The same name again: what the node had of the former one does not stand in its way.
        grid.deployRecovering("early", "64MiB");
        grid.rest().post(Rest.cache("early") + "/1", "text/plain", "anew");
        assertEquals("anew", new Rest(second, null, null).getText(Rest.cache("early") + "/1"));
        grid.leave(1);
        grid.ask("undeploy", "early").succeeded();
        grid.kill(0);

        // The second one first: it waits for somebody who knows.
        CompletableFuture<TestGrid.Ran> waiting = CompletableFuture.supplyAsync(() ->
                grid.startMember(1));
        grid.startMember(0).succeeded();
        waiting.join().succeeded();
        assertRecovered(grid, second);
        assertEquals(List.of("kept", "late"), deployed(second));
        assertEquals(List.of("kept", "late"), deployed(grid.server()));
        assertFalse(Files.readString(grid.member(1).server().resolve("data/caches.xml"))
                .contains("early"));
    }

    /** Those that were deployed, as a node lists them. */
    private static List<String> deployed(String server) {
        return Caches.names(new Rest(server, null, null)).stream()
                .filter(name -> !name.endsWith("Cache")).toList();
    }

    /** Makes a cache that has an index and recovers, with an order of each price. */
    private static void deployOrders(TestGrid grid) {
        grid.rest().post("/v2/schemas/shop.proto", "text/plain", """
                package shop;
                /** @Indexed */
                message Order {
                  /** @Basic(sortable = true, projectable = true) */
                  optional string name = 1;
                  /** @Basic */
                  optional int32 price = 2;
                }""");
        grid.ask("deploy", "kept", "--template", "flash,partitioned-with-backup", "--recovery",
                "--capacity", "64MiB", "--memory", "32MiB", "--index", "shop.Order").succeeded();
        StringBuilder rows = new StringBuilder();
        for (int price = 0; price < ENTRIES; price++) {
            rows.append(price == 0 ? "" : ", ").append("('").append(price).append("', 'order ")
                    .append(price).append("', ").append(price).append(')');
        }
        assertEquals(ENTRIES + " rows changed\n", grid.ask("sql",
                "insert into kept (_key, name, price) values " + rows).succeeded().out());
    }

    /** In the foreground, as a service manager would; back once all nodes serve. */
    private static Process start(TestGrid grid) throws Exception {
        Path program = Path.of(System.getProperty("entresol.grid.home"), "bin/entresol-grid");
        ProcessBuilder builder = new ProcessBuilder(program + "", "start", "--dir",
                grid.folder + "/cluster", "--nodes", "" + NODES, "--port-offset",
                "" + grid.offset, "--memory", "384m", "--endpoint-template", "ram")
                .redirectError(ProcessBuilder.Redirect.INHERIT);
        Process launcher = TestGrid.startProcess(builder);
        BufferedReader said = new BufferedReader(
                new InputStreamReader(launcher.getInputStream(), StandardCharsets.UTF_8));
        String line = said.readLine();
        while (line != null && !line.startsWith("stop with")) {
            line = said.readLine();
        }
        assertTrue(line != null, "the cluster did not start");
        return launcher;
    }

    private static void stop(Process launcher, TestGrid grid) throws Exception {
        launcher.destroy();
        launcher.waitFor();
        for (int number = 0; number < NODES; number++) {
            assertEquals(Optional.empty(), grid.member(number).process());
        }
    }
}
