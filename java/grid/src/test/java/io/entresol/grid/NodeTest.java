package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.grid.bench.RespClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.infinispan.client.hotrod.RemoteCache;
import org.infinispan.client.hotrod.RemoteCacheManager;
import org.infinispan.client.hotrod.configuration.ConfigurationBuilder;
import org.infinispan.commons.dataconversion.internal.Json;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;

/** One node, by all its protocols; each test has caches of its own. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class NodeTest {
    private static final String[] SMALL = {"--capacity", "64MiB", "--memory", "32MiB"};

    private static final String QUERY = "from shop.Order where price > 100 order by name";
    private static final String DEAR =
            "name     price%norder 3  150.0%norder 4  200.0%n2 of 2%n".formatted();

    private final HttpClient http = HttpClient.newHttpClient();
    private TestGrid grid;

    @BeforeAll
    void start() throws Exception {
        grid = new TestGrid();
        grid.start().succeeded();
        grid.rest().post("/v2/schemas/shop.proto", "text/plain", """
                package shop;
                /** @Indexed */
                message Order {
                  /** @Basic(sortable = true) */
                  optional string name = 1;
                  /** @Basic */
                  optional double price = 2;
                }""");
    }

    @AfterAll
    void stop() throws Exception {
        grid.stop().succeeded();
        grid.remove();
    }

    private TestGrid.Ran deploy(String name, String... options) {
        String[] all = new String[options.length + 2];
        all[0] = "deploy";
        all[1] = name;
        System.arraycopy(options, 0, all, 2, options.length);
        return grid.ask(all);
    }

    private static String[] small(String... more) {
        String[] all = java.util.Arrays.copyOf(more, more.length + SMALL.length);
        System.arraycopy(SMALL, 0, all, more.length, SMALL.length);
        return all;
    }

    private RemoteCacheManager hotRod() {
        return new RemoteCacheManager(new ConfigurationBuilder().addServer().host("127.0.0.1")
                .port(grid.ports().main()).build());
    }

    private static byte[] value(int seed) {
        byte[] value = new byte[2_000];
        new Random(seed).nextBytes(value);
        return value;
    }

    private int status(String path) throws Exception {
        return http.send(HttpRequest.newBuilder(URI.create("http://" + grid.server() + path))
                .build(), HttpResponse.BodyHandlers.discarding()).statusCode();
    }

    private Json flash(String cache) {
        return Json.read(grid.ask("info", cache, "--json").succeeded().out())
                .at("nodes").at(0).at("flash");
    }

    @Test
    void hotRodClientsGetWhatTheyPutIntoRamAndFlash() {
        deploy("hot-flash", small("--cache-entries-percentage", "0")).succeeded();
        deploy("hot-ram", "--template", "ram").succeeded();
        try (RemoteCacheManager manager = hotRod()) {
            for (String name : new String[] {"hot-flash", "hot-ram"}) {
                RemoteCache<String, byte[]> cache = manager.getCache(name);
                for (int key = 0; key < 200; key++) {
                    cache.put("key " + key, value(key));
                }
                for (int key = 0; key < 200; key++) {
                    assertArrayEquals(value(key), cache.get("key " + key));
                }
                assertNull(cache.get("none"));
                assertEquals(200, cache.size());
            }
        }
        // One entry at most is in the heap: the others came from the store.
        assertEquals(200, flash("hot-flash").at("entries").asLong());
        assertTrue(flash("hot-flash").at("gets").asLong() >= 199);
        assertTrue(flash("hot-ram").isNull());
        // Where a cache has no store this was a stack.
        String told = grid.ask("info", "hot-ram").succeeded().out();
        assertTrue(told.contains("entries   200\n"), told);
    }

    @Test
    void respClientsSelectCachesByNameAndByNumber() throws Exception {
        deploy("resp-flash", small("--encoding", "resp", "--database", "7")).succeeded();
        byte[] key = {'k', 0, (byte) 200};
        try (RespClient client = new RespClient("127.0.0.1", grid.ports().resp())) {
            client.set(key, value(1));
            client.select("resp-flash");
            assertNull(client.get(key));
            client.set(key, value(2));
            client.select("7");
            assertArrayEquals(value(2), client.get(key));
            client.select("0");
            assertArrayEquals(value(1), client.get(key));
        }
        assertEquals(1, flash("resp-flash").at("entries").asLong());
        // It was said to be undeployed, and stayed; of the others one answered with 404.
        for (String command : new String[] {"undeploy", "info"}) {
            TestGrid.Ran refused = grid.ask(command, "7");
            assertEquals(2, refused.status(), refused.out());
            assertTrue(refused.err().contains("of cache 'resp-flash'; name that"), refused.err());
        }
        TestGrid.Ran taken = deploy("7", small());
        assertTrue(taken.err().contains("cache 'resp-flash' has '7'"), taken.err());
        assertEquals(1, flash("resp-flash").at("entries").asLong());
    }

    @Test
    void memcachedClientsGetWhatTheySet() throws Exception {
        try (Socket socket = new Socket("127.0.0.1", grid.ports().memcached())) {
            socket.getOutputStream().write("set door 0 0 4\r\nopen\r\nget door\r\n"
                    .getBytes(StandardCharsets.US_ASCII));
            BufferedReader lines = new BufferedReader(new InputStreamReader(
                    socket.getInputStream(), StandardCharsets.US_ASCII));
            assertEquals("STORED", lines.readLine());
            assertEquals("VALUE door 0 4", lines.readLine());
            assertEquals("open", lines.readLine());
            assertEquals("END", lines.readLine());
        }
        assertTrue(flash("memcachedCache").at("entries").asLong() >= 1);
    }

    @Test
    void theConsoleMetricsAndHealthAreServed() throws Exception {
        assertEquals(200, status("/console/"));
        assertEquals(200, status("/metrics"));
        assertEquals(200, status("/health/ready"));
        assertEquals(200, status("/rest/v2/container/health/status"));
    }

    @Test
    void metricsHaveWhatTheStoreOfEachCacheDoes() throws Exception {
        deploy("measured", small("--encoding", "text")).succeeded();
        double written = metric("entresol_device_written_bytes_total", "measured");
        assertEquals(0, metric("entresol_puts_total", "measured"));
        for (int key = 0; key < 20; key++) {
            grid.rest().post(Rest.cache("measured") + "/" + key, "text/plain", "x".repeat(9_000));
        }
        assertEquals(20, metric("entresol_puts_total", "measured"));
        assertEquals(20, metric("entresol_entries", "measured"));
        assertTrue(metric("entresol_flash_live_bytes", "measured") > 20 * 9_000);
        assertTrue(metric("entresol_user_written_bytes_total", "measured") > 20 * 9_000);
        assertTrue(metric("entresol_device_written_bytes_total", "measured") >= written);
        assertEquals(32 << 20, metric("entresol_memory_cap_bytes", "measured"));
        for (String name : new String[] {"device_reads_total", "device_writes_total",
            "flash_allocated_bytes", "write_amplification_ratio", "reclaim_moved_bytes_total",
            "index_bytes", "cache_bytes", "poisoned"}) {
            assertTrue(metric("entresol_" + name, "measured") >= 0, name);
        }
        String text = metrics();
        assertTrue(text.contains("# TYPE entresol_puts_total counter"), text);
        assertTrue(text.contains("# TYPE entresol_entries gauge"), text);
        grid.ask("undeploy", "measured").succeeded();
        assertFalse(metrics().contains("cache=\"measured\""));
    }

    private String metrics() throws Exception {
        return http.send(HttpRequest.newBuilder(URI.create("http://" + grid.server() + "/metrics"))
                .build(), HttpResponse.BodyHandlers.ofString()).body();
    }

    private double metric(String name, String cache) throws Exception {
        String text = metrics();
        return text.lines().filter(line -> line.startsWith(name + "{")
                        && line.contains("cache=\"" + cache + "\""))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.indexOf('}') + 2)))
                .findFirst().orElseThrow(() -> new AssertionError(name + " in\n" + text));
    }

    @Test
    void aCacheMadeByPlainRestIsOnFlash() {
        Rest rest = grid.rest();
        rest.post(Rest.cache("by-xml"), "application/xml", """
                <distributed-cache>
                  <encoding media-type="text/plain"/>
                  <persistence>
                    <entresol-store xmlns="urn:infinispan:config:store:entresol:16.0"
                        capacity="64MiB" memory="32MiB" durability="periodic:50"/>
                  </persistence>
                </distributed-cache>""");
        rest.post(Rest.cache("by-json"), "application/json", """
                {"distributed-cache": {"encoding": {"media-type": "text/plain"},
                  "persistence": {"entresol-store": {"capacity": "64MiB", "memory": "32MiB"}}}}""");
        for (String name : new String[] {"by-xml", "by-json"}) {
            rest.post(Rest.cache(name) + "/key", "text/plain", "value of " + name);
            assertEquals("value of " + name, rest.getText(Rest.cache(name) + "/key"));
            assertEquals(1, flash(name).at("entries").asLong());
            // Infinispan's default, which it does not write down.
            assertEquals("flash,partitioned-with-backup", Json.read(
                    grid.ask("info", name, "--json").out()).at("template").asString());
        }
        String durability = Json.read(grid.ask("info", "by-xml", "--json").out())
                .at("store").at("durability").asString();
        assertEquals("periodic:50", durability);
    }

    @Test
    void anUndeployedCacheIsGoneWithItsFile() throws IOException {
        deploy("gone", small()).succeeded();
        assertTrue(grid.ask("list").succeeded().out().contains("gone "));
        assertTrue(storeFiles("gone") > 0);
        grid.ask("undeploy", "gone").succeeded();
        assertFalse(grid.ask("list").succeeded().out().contains("gone "));
        assertEquals(0, storeFiles("gone"));
        TestGrid.Ran again = grid.ask("undeploy", "gone");
        assertEquals(2, again.status());
        assertTrue(again.err().contains("there is no cache 'gone'"), again.err());
    }

    @Test
    void dataThatUndeployKeptAreThereAgainWithTheNextDeployment() throws IOException {
        String[] text = small("--encoding", "text");
        deploy("kept-data", text).succeeded();
        grid.put("kept-data", 20, "value ");
        deployOrders("kept-index");
        for (String name : new String[] {"kept-data", "kept-index"}) {
            String said = grid.ask("undeploy", name, "--keep-data").succeeded().out();
            assertEquals("undeployed, with its data kept, " + name + "\n", said);
            assertFalse(grid.ask("list").succeeded().out().contains(name));
        }
        TestGrid.Ran otherwise = deploy("kept-data", small("--encoding", "bytes"));
        assertEquals(2, otherwise.status(), otherwise.out());
        assertTrue(otherwise.err().contains("text/plain"), otherwise.err());
        assertTrue(otherwise.err().contains("--reformat"), otherwise.err());
        TestGrid.Ran ram = deploy("kept-data", "--template", "ram");
        assertEquals(2, ram.status(), ram.out());
        assertTrue(ram.err().contains("entresol-grid undeploy kept-data"), ram.err());
        String again = deploy("kept-data", text).succeeded().out();
        assertTrue(again.contains("it has the 20 entries that were kept"), again);
        for (int key = 0; key < 20; key++) {
            assertEquals("value " + key, grid.rest().getText(Rest.cache("kept-data") + "/" + key));
        }
        deploy("kept-index", small("--index", "shop.Order")).succeeded();
        assertEquals(DEAR, grid.ask("query", "kept-index", QUERY).succeeded().out());
        // What is undeployed next is told anew whether to keep.
        grid.ask("undeploy", "kept-data").succeeded();
        assertEquals(0, storeFiles("kept-data"));
    }

    @Test
    void dataThatUndeployKeptAreDroppedByReformatAndByUndeploy() throws IOException {
        String[] text = small("--encoding", "text");
        deploy("dropped", text).succeeded();
        grid.put("dropped", 5, "value ");
        grid.ask("undeploy", "dropped", "--keep-data").succeeded();
        deploy("dropped", small("--encoding", "text", "--reformat")).succeeded();
        assertEquals(0, flash("dropped").at("entries").asLong());
        grid.put("dropped", 5, "value ");
        grid.ask("undeploy", "dropped", "--keep-data").succeeded();
        assertTrue(storeFiles("dropped") > 0);
        assertEquals("dropped what was kept of dropped\n",
                grid.ask("undeploy", "dropped").succeeded().out());
        assertEquals(0, storeFiles("dropped"));
        deploy("dropped", text).succeeded();
        assertEquals(0, flash("dropped").at("entries").asLong());
        deploy("in-ram", "--template", "ram").succeeded();
        TestGrid.Ran ram = grid.ask("undeploy", "in-ram", "--keep-data");
        assertTrue(ram.err().contains("leave --keep-data out"), ram.err());
    }

    /** The answer named the log of a node, which is on another machine or in a container. */
    @Test
    void aDiskWithoutRoomIsNamedWithTheBytesThatItWouldTakeAndThoseThatItHas() throws Exception {
        FileStore disk = Files.getFileStore(grid.folder);
        long mebibytes = 2 * (disk.getTotalSpace() >> 20);
        TestGrid.Ran refused = deploy("too-large", "--capacity", mebibytes + "MiB");
        assertEquals(2, refused.status(), refused.out());
        assertTrue(refused.err().contains("no room for " + (mebibytes << 20) + " bytes"),
                refused.err());
        assertTrue(refused.err().contains(" bytes are free"), refused.err());
        assertTrue(refused.err().contains("The file system is " + disk), refused.err());
        assertFalse(grid.ask("list").succeeded().out().contains("too-large"));
    }

    private long storeFiles(String cache) throws IOException {
        try (var files = Files.walk(grid.folder.resolve("node/server/data"))) {
            return files.filter(Files::isRegularFile).map(Path::toString)
                    .filter(file -> file.contains("/" + cache + "/")).count();
        }
    }

    @Test
    void listNamesTemplatesAndCountsEntries() {
        deploy("listed", "--template", "ram,partitioned-with-backup").succeeded();
        grid.rest().post(Rest.cache("listed") + "/1", "text/plain", "one");
        String line = grid.ask("list").succeeded().out().lines()
                .filter(each -> each.startsWith("listed")).findFirst().orElseThrow();
        assertEquals("listed ram,partitioned-with-backup 1 HEALTHY",
                line.strip().replaceAll(" +", " "));
    }

    /** Makes a cache of four orders with an index. */
    private void deployOrders(String name) {
        deploy(name, small("--index", "shop.Order")).succeeded();
        for (int order = 1; order <= 4; order++) {
            grid.rest().post(Rest.cache(name) + "/" + order, "application/json", Json.object(
                    "_type", "shop.Order", "name", "order " + order, "price", order * 50)
                    .toString());
        }
    }

    @Test
    void aQueryIsATableOfWhatItFinds() {
        deployOrders("orders");
        assertEquals(DEAR, grid.ask("query", "orders", QUERY).succeeded().out());
        TestGrid.Ran mistake = grid.ask("query", "orders", "from shop.Nothing");
        assertEquals(2, mistake.status());
        assertTrue(mistake.err().contains("shop.Nothing"), mistake.err());
    }

    @Test
    void sqlReadsAndChangesWhatOtherDoorsServe() throws Exception {
        deployOrders("bought");
        String dear = "select name, price from bought where price > 100 order by name";
        assertEquals("""
                name     price
                -------  -----
                order 3  150.0
                order 4  200.0
                2 rows
                """, grid.ask("sql", dear).succeeded().out());
        assertEquals("{\"name\":\"order 3\",\"price\":150.0}\n",
                grid.ask("sql", "--json", dear + " limit 1").succeeded().out());
        assertEquals("1 row changed\n4 rows changed\n", grid.ask("sql",
                "insert into bought (_key, name, price) values ('5', 'order 5', 1)",
                "update bought set price = price + 1 where price < 200").succeeded().out());
        assertEquals("name,price\norder 5,2.0\n",
                grid.ask("sql", "--csv", "select name, price from bought where _key = '5'")
                        .succeeded().out());
        assertEquals(2.0, Json.read(grid.rest().getText(Rest.cache("bought") + "/5"))
                .at("price").asDouble());
        TestGrid.Ran mistake = grid.ask("sql", "select prize from bought");
        assertEquals(1, mistake.status());
        assertTrue(mistake.err().contains("there is no column `prize`"), mistake.err());
        assertTrue(mistake.err().contains("price"), mistake.err());
        String info = grid.ask("info").succeeded().out();
        assertTrue(info.contains("127.0.0.1:" + grid.ports().sql()), info);
    }

    @Test
    void cachesTheirEntriesAndIndexesAreThereAfterARestart() throws Exception {
        deploy("kept", small("--encoding", "text")).succeeded();
        grid.put("kept", 50, "value ");
        try (RespClient client = new RespClient("127.0.0.1", grid.ports().resp())) {
            client.set("kept".getBytes(StandardCharsets.US_ASCII), value(3));
        }
        deployOrders("kept-orders");
        deploy("put-away", small("--encoding", "text")).succeeded();
        grid.put("put-away", 9, "value ");
        grid.ask("undeploy", "put-away", "--keep-data").succeeded();
        grid.stop().succeeded();
        assertFalse(Files.exists(grid.folder.resolve("node/node.pid")));
        grid.start("--histograms").succeeded();
        assertEquals(DEAR, grid.ask("query", "kept-orders", QUERY).succeeded().out());
        Rest again = grid.rest();
        for (int key = 0; key < 50; key++) {
            assertEquals("value " + key, again.getText(Rest.cache("kept") + "/" + key));
        }
        try (RespClient client = new RespClient("127.0.0.1", grid.ports().resp())) {
            assertArrayEquals(value(3), client.get("kept".getBytes(StandardCharsets.US_ASCII)));
        }
        assertTrue(metrics().lines().anyMatch(line -> line.contains("_bucket{")
                && line.contains("cache=\"kept\"")), metrics());
        assertFalse(grid.ask("list").succeeded().out().contains("put-away"));
        deploy("put-away", small("--encoding", "text")).succeeded();
        assertEquals("value 8", again.getText(Rest.cache("put-away") + "/8"));
    }

    @Test
    void aCacheOfTwoSitesIsRefusedWhereThereIsOne() {
        TestGrid.Ran refused = deploy("far", "--template", "two-sites", "--other-site", "NYC");
        assertEquals(2, refused.status());
        assertTrue(refused.err().contains("--site NAME --other-site NYC="), refused.err());
    }

    @Test
    void theBenchmarkPrintsTheTutorialsTableAndLeavesNoCacheBehind() {
        String table = grid.ask("bench", "--iterations", "20", "--rounds", "1", "--warm-up", "0",
                "--threads", "2").succeeded().out();
        for (String part : new String[] {"Hot Rod, 1 node, 2 threads", "RESP, 1 node, 2 threads",
            "avg TP per thread", "write, flash", "17,185", "flash / RAM: write"}) {
            assertTrue(table.contains(part), table);
        }
        assertFalse(grid.ask("list").out().contains("entresol-bench"));
    }

    @Test
    void theBenchmarkHasInfinispansOwnStoresAndTheFloorInTheSameTable() {
        TestGrid.Ran ran = grid.ask("bench", "--iterations", "20", "--rounds", "1", "--warm-up", "0",
                "--threads", "2", "--protocol", "hotrod", "--stores", "flash,floor,sifs").succeeded();
        for (String part : new String[] {"write, flash", "write, SoftIndexFileStore",
            "read, SoftIndexFileStore", "flash / SoftIndexFileStore: write", "write, floor",
            "flash / floor: write"}) {
            assertTrue(ran.out().contains(part), ran.out());
        }
        assertFalse(ran.out().contains("RAM"), ran.out());
        assertFalse(grid.ask("list").out().contains("entresol-bench"));
        TestGrid.Ran lacking = grid.ask("bench", "--iterations", "1", "--rounds", "1",
                "--protocol", "hotrod", "--stores", "rocksdb");
        assertEquals(2, lacking.status());
        assertTrue(lacking.err().contains("-Procksdb"), lacking.err());
    }

    /** Its caches stayed, and the next run refused to begin. */
    @Test
    void aBenchmarkThatIsInterruptedDropsItsCaches() throws Exception {
        Path said = grid.folder.resolve("interrupted");
        Process bench = TestGrid.startProcess(new ProcessBuilder(
                TestGrid.program(), "bench", "--protocol", "hotrod", "--iterations", "1000000",
                "--server", grid.server(), "--value-size", "8", "--stores", "ram")
                .redirectErrorStream(true).redirectOutput(said.toFile()));
        // It knows that the cache is there once it puts.
        while (!TestGrid.isOver(bench.onExit())
                && entries("entresol-bench-ram") == 0) {
            Thread.onSpinWait();
        }
        assertTrue(bench.isAlive(), () -> read(said));
        bench.destroy();
        bench.waitFor();
        assertFalse(grid.ask("list").out().contains("entresol-bench"), () -> read(said));
    }

    /** None of a cache that is not there, or not yet: Infinispan names it before. */
    private long entries(String cache) {
        try {
            return Caches.size(grid.rest(), cache);
        } catch (RefusedException absent) {
            return 0;
        }
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    @Test
    void otherNodesNoticeItsDeathAtAPortThatItNames() throws Exception {
        try (Socket socket = new Socket("127.0.0.1", grid.ports().failures())) {
            assertTrue(socket.isConnected());
        }
    }

    @Test
    void aSecondNodeOnTheSameFolderOrPortsIsRefused() throws Exception {
        TestGrid.Ran sameFolder = grid.start();
        assertEquals(2, sameFolder.status());
        assertTrue(sameFolder.err().contains("a node runs in"), sameFolder.err());
        assertTrue(sameFolder.err().contains("entresol-grid stop --dir"), sameFolder.err());
        TestGrid.Ran samePorts = TestGrid.inside("start", "--dir", grid.folder + "/other",
                "--port-offset", "" + grid.offset, "--detach");
        assertEquals(2, samePorts.status());
        assertTrue(samePorts.err().contains("port " + grid.ports().main()), samePorts.err());
        assertTrue(samePorts.err().contains("--port-offset"), samePorts.err());
    }
}
