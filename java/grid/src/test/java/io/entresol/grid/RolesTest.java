package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.grid.bench.RespClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.infinispan.client.hotrod.RemoteCache;
import org.infinispan.client.hotrod.RemoteCacheManager;
import org.infinispan.client.hotrod.configuration.ConfigurationBuilder;
import org.infinispan.commons.marshall.UTF8StringMarshaller;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;

/** What users of each role may do, by each protocol; the password of each is its name. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class RolesTest {
    private static final String ADMIN = "admin";
    private static final byte[] BYTES = {1, 2};
    private static final int PATIENCE_MILLIS = 5_000;
    private static final String SCHEMA = """
            package shop;
            /** @Indexed */
            message Order {
              /** @Basic(sortable = true) */
              optional string name = 1;
            }""";
    private static final List<String> ALL =
            List.of("admin", "deployer", "application", "observer", "monitor");
    private static final List<String> READ =
            List.of("admin", "deployer", "application", "observer");
    private static final List<String> WRITE = List.of("admin", "deployer", "application");
    private static final List<String> DEPLOY = List.of("admin", "deployer");

    private TestGrid grid;

    @BeforeAll
    void start() throws Exception {
        grid = new TestGrid();
        Path users = grid.folder.resolve("users");
        for (String role : ALL) {
            UserCommandTest.add("of-" + role + "\n", "user-" + role, "--users", users + "",
                    "--role", role).succeeded();
        }
        grid.start("--users", users + "", "--endpoint-template", "ram").succeeded();
        as(ADMIN, "deploy", "texts", "--template", "ram", "--encoding", "text").succeeded();
        as(ADMIN, "deploy", "flashes", "--capacity", "64MiB", "--memory", "32MiB").succeeded();
        rest(ADMIN).post("/v2/schemas/shop.proto", "text/plain", SCHEMA);
        as(ADMIN, "deploy", "orders", "--template", "ram", "--index", "shop.Order").succeeded();
        rest(ADMIN).post(Rest.cache("orders") + "/1", "application/json",
                "{\"_type\": \"shop.Order\", \"name\": \"chair\"}");
        rest(ADMIN).post(Rest.cache("texts") + "/there", "text/plain", "value");
    }

    @AfterAll
    void stop() throws Exception {
        grid.stop().succeeded();
        grid.remove();
    }

    private TestGrid.Ran as(String role, String... command) {
        List<String> all = new ArrayList<>(Arrays.asList(command));
        all.addAll(List.of("--user", "user-" + role, "--password", "of-" + role));
        return grid.ask(all.toArray(String[]::new));
    }

    private Rest rest(String role) {
        return new Rest(grid.server(), "user-" + role, "of-" + role);
    }

    /** Those roles, and no others, whose users do it without a refusal. */
    private void assertMay(List<String> expected, String what, Map<String, Callable<?>> each) {
        List<String> may = new ArrayList<>();
        StringBuilder said = new StringBuilder();
        for (String role : ALL) {
            try {
                Object done = each.get(role).call();
                if (!(done instanceof TestGrid.Ran ran) || ran.status() == 0) {
                    may.add(role);
                } else {
                    said.append(role).append(": ").append(ran.err());
                }
            } catch (Exception refused) {
                said.append(role).append(": ").append(refused).append('\n');
            }
        }
        assertEquals(expected, may, what + "\n" + said);
    }

    private void assertMay(List<String> expected, String... command) {
        Map<String, Callable<?>> each = new TreeMap<>();
        ALL.forEach(role -> each.put(role, () -> as(role, command)));
        assertMay(expected, String.join(" ", command), each);
    }

    @Test
    void commandsAreForTheRolesOfTheGuide() {
        assertMay(ALL, "list");
        assertMay(List.of(ADMIN), "info");
        assertMay(List.of(ADMIN), "info", "flashes");
        assertMay(READ, "query", "orders", "select name from shop.Order");
        assertMay(READ, "sql", "select name from orders");
        assertMay(READ, "sql", "select count(*) from orders");
        assertMay(WRITE, "sql", "update orders set name = 'table'");
        assertMay(WRITE, "sql", "delete from orders where name = 'none'");
        Map<String, Callable<?>> deploying = new TreeMap<>();
        Map<String, Callable<?>> undeploying = new TreeMap<>();
        for (String role : ALL) {
            deploying.put(role, () -> as(role, "deploy", "of-" + role, "--capacity", "64MiB",
                    "--memory", "32MiB"));
            undeploying.put(role, () -> as(role, "undeploy", "of-" + role));
        }
        assertMay(DEPLOY, "deploy", deploying);
        assertMay(DEPLOY, "undeploy", undeploying);
    }

    private void assertMayBy(List<String> expected, String what, Asked asked) {
        Map<String, Callable<?>> each = new TreeMap<>();
        ALL.forEach(role -> each.put(role, () -> asked.ask(role)));
        assertMay(expected, what, each);
    }

    private interface Asked {
        Object ask(String role) throws Exception;
    }

    @Test
    void cachesAreForTheRolesOfTheGuideByEachProtocol() {
        assertMayBy(READ, "REST reads",
                role -> rest(role).getText(Rest.cache("texts") + "/there"));
        assertMayBy(WRITE, "REST writes",
                role -> rest(role).post(Rest.cache("texts") + "/by-" + role, "text/plain", "a"));
        assertMayBy(WRITE, "tasks", role -> rest(role).post("/v2/tasks/" + NodeTask.NAME
                + "?action=exec", null, ""));
        for (String task : new String[] {SweepTask.NAME + "?action=exec&param.name=none",
            UndoTask.NAME + "?action=exec&param.name=none&param.step=look",
            KeepTask.NAME + "?action=exec&param.name=none&param.step=LOOK"}) {
            assertMayBy(DEPLOY, task, role -> rest(role).post("/v2/tasks/" + task, null, ""));
        }
        assertMayBy(READ, "Hot Rod reads", role -> hotRod(role, "texts", cache ->
                cache.get("there")));
        assertMayBy(WRITE, "Hot Rod writes", role -> hotRod(role, "texts", cache ->
                cache.put("by", role)));
        assertMayBy(READ, "RESP reads", role -> resp(role, client -> client.get(BYTES)));
        assertMayBy(WRITE, "RESP writes", role -> resp(role, client -> {
            client.set(BYTES, BYTES);
            return null;
        }));
        assertMayBy(WRITE, "memcached writes", role -> memcached(role, "set key 0 0 1\r\na\r\n",
                "STORED"));
        assertMayBy(READ, "memcached reads", role -> memcached(role, "get key\r\n", "VALUE"));
    }

    private interface Done<C> {
        Object with(C client) throws Exception;
    }

    private Object hotRod(String role, String name, Done<RemoteCache<String, String>> done)
            throws Exception {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.addServer().host("127.0.0.1").port(grid.ports().main()).maxRetries(0)
                .security().authentication().username("user-" + role).password("of-" + role);
        builder.remoteCache(name).marshaller(UTF8StringMarshaller.class);
        try (RemoteCacheManager manager = new RemoteCacheManager(builder.build())) {
            return done.with(manager.getCache(name));
        }
    }

    private Object resp(String role, Done<RespClient> done) throws Exception {
        try (RespClient client = new RespClient("127.0.0.1", grid.ports().resp())) {
            client.authenticate("user-" + role, "of-" + role);
            return done.with(client);
        }
    }

    /** By memcached's protocol of text, where the first set is the login. */
    private Object memcached(String role, String command, String expected) throws IOException {
        String login = "user-" + role + " of-" + role;
        try (Socket socket = new Socket("127.0.0.1", grid.ports().memcached())) {
            socket.setSoTimeout(PATIENCE_MILLIS);
            BufferedReader from = new BufferedReader(new InputStreamReader(socket.getInputStream(),
                    StandardCharsets.US_ASCII));
            socket.getOutputStream().write(("set login 0 0 " + login.length() + "\r\n" + login
                    + "\r\n").getBytes(StandardCharsets.US_ASCII));
            assertEquals("STORED", from.readLine());
            // Infinispan answers nothing to what it refuses.
            socket.getOutputStream().write((command + "version\r\n")
                    .getBytes(StandardCharsets.US_ASCII));
            String told = from.readLine();
            if (!String.valueOf(told).startsWith(expected)) {
                throw new IOException(told);
            }
            return told;
        }
    }

    @Test
    void aRefusalNamesUserPermissionAndWhatToDo() {
        TestGrid.Ran refused = as("observer", "deploy", "none", "--template", "ram");
        assertEquals(2, refused.status(), refused.out());
        for (String part : new String[] {"'user-observer'", "a role with", "--user NAME"}) {
            assertTrue(refused.err().contains(part), refused.err());
        }
        TestGrid.Ran sql = as("monitor", "sql", "select name from orders");
        for (String part : new String[] {"user 'user-monitor' lacks the permission BULK_READ of"
                + " cache orders", "ask as another user"}) {
            assertTrue(sql.err().contains(part), sql.err());
        }
        assertTrue(as("observer", "sql", "delete from orders").err()
                .contains("user 'user-observer' lacks the permission WRITE"));
    }

    @Test
    void theConsoleOfStoresIsForUsersOfEachRole() throws Exception {
        for (String role : ALL) {
            String page = stores(grid, role, "of-" + role).body();
            assertTrue(page.contains("flashes"), page);
        }
        assertEquals(401, stores(grid, ADMIN, "of-nobody").statusCode());
    }

    private static HttpResponse<String> stores(TestGrid grid, String role, String password)
            throws Exception {
        String login = Base64.getEncoder().encodeToString(
                ("user-" + role + ":" + password).getBytes(StandardCharsets.UTF_8));
        URI page = URI.create("http://127.0.0.1:" + grid.ports().sql() + "/");
        return HttpClient.newHttpClient().send(
                HttpRequest.newBuilder(page).header("Authorization", "Basic " + login).build(),
                HttpResponse.BodyHandlers.ofString());
    }

    /** What nodes ask of each other is for no user: they were refused it. */
    @Test
    void aClusterOfUsersKeepsItsCachesAndItsRoles() throws Exception {
        TestGrid cluster = new TestGrid();
        String folder = cluster.folder + "/cluster";
        String[] start = {"start", "--dir", folder, "--nodes", "2", "--port-offset",
            "" + cluster.offset, "--memory", "384m", "--endpoint-template", "ram", "--detach",
            "--users", grid.folder + "/users"};
        String[] stop = {"stop", "--dir", folder, "--user", "user-admin", "--password",
            "of-admin"};
        String[] count = {"sql", "--csv", "select count(*) as found from orders", "--user",
            "user-observer", "--password", "of-observer"};
        TestGrid.program(start).succeeded();
        Rest admin = new Rest(cluster.server(), "user-admin", "of-admin");
        admin.post("/v2/schemas/shop.proto", "text/plain", SCHEMA);
        cluster.ask("deploy", "orders", "--template", "flash,partitioned-with-backup",
                "--recovery", "--index", "shop.Order", "--capacity", "64MiB", "--memory", "32MiB",
                "--user", "user-deployer", "--password", "of-deployer").succeeded();
        for (int key = 0; key < 20; key++) {
            admin.post(Rest.cache("orders") + "/" + key, "application/json",
                    "{\"_type\": \"shop.Order\", \"name\": \"chair\"}");
        }
        assertEquals("found\n20\n", cluster.ask(count).succeeded().out());
        String page = stores(cluster, "monitor", "of-monitor").body();
        assertTrue(page.contains("node-0") && page.contains("node-1"), page);
        assertFalse(page.contains("did not answer"), page);
        TestGrid.program(stop).succeeded();
        TestGrid.program(start).succeeded();
        assertEquals("found\n20\n", cluster.ask(count).succeeded().out());
        assertEquals(1, cluster.ask("sql", "delete from orders", "--user", "user-observer",
                "--password", "of-observer").status());
        cluster.ask("undeploy", "orders", "--user", "user-deployer", "--password", "of-deployer")
                .succeeded();
        // Without users nobody is asked for a permission, whatever was saved.
        TestGrid.program(stop).succeeded();
        cluster.remove();
    }
}
