package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.infinispan.commons.dataconversion.internal.Json;
import org.junit.jupiter.api.Test;

/** The console of a node's stores. */
class StoresSiteTest {
    private static final String EVIL = "<img src=x>&\"'";
    private static final String ESCAPED = "&lt;img src=x&gt;&amp;&quot;'";
    private static final Pattern SECTION =
            Pattern.compile("<section class=\"store\" data-store=\"([^\"]*)\">");
    private static final Pattern FIGURE =
            Pattern.compile("<data data-stat=\"([^\"]*)\" value=\"([^\"]*)\">");

    private final HttpClient http = HttpClient.newHttpClient();

    /** A figure of a store as a page shows it. */
    private record Shown(String path, String value) {
    }

    private HttpResponse<String> get(int port, String path, String user) throws Exception {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path));
        if (user != null) {
            request.header("Authorization", "Basic " + Base64.getEncoder()
                    .encodeToString(user.getBytes(StandardCharsets.UTF_8)));
        }
        return http.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    private static List<Shown> figures(String page, String escapedName) {
        List<Shown> figures = new ArrayList<>();
        Matcher section = SECTION.matcher(page);
        while (section.find()) {
            if (section.group(1).equals(escapedName)) {
                int next = page.indexOf("<section class=\"store\"", section.end());
                FIGURE.matcher(page.substring(section.end(), next < 0 ? page.length() : next))
                        .results().forEach(found ->
                                figures.add(new Shown(found.group(1), found.group(2))));
            }
        }
        return figures;
    }

    private static Json flash(Rest rest, String cache) {
        return Caches.flash(rest).get(0).at("caches").at(cache);
    }

    @Test
    void everyFigureIsThatOfTheStoreAndOnlyUsersAreShownOne() throws Exception {
        TestGrid grid = new TestGrid();
        Path users = Files.writeString(grid.folder.resolve("users"), "ada=secret\n");
        String started = grid.start("--users", users.toString()).succeeded().out();
        int port = grid.ports().sql();
        assertTrue(started.contains("  stores         http://127.0.0.1:" + port + "/\n"), started);
        String[] ada = {"--user", "ada", "--password", "secret"};
        for (String name : new String[] {"prices", EVIL}) {
            grid.ask(Stream.concat(Stream.of("deploy", name, "--capacity", "64MiB", "--memory",
                    "32MiB", "--encoding", "text"), Stream.of(ada)).toArray(String[]::new))
                    .succeeded();
        }
        Rest rest = new Rest(grid.server(), "ada", "secret");
        for (int key = 0; key < 200; key++) {
            rest.post(Rest.cache("prices") + "/" + key, "text/plain", "value " + key);
        }
        Json before = flash(rest, "prices");
        HttpResponse<String> answer = get(port, "/", "ada:secret");
        Json after = flash(rest, "prices");
        assertEquals(200, answer.statusCode());
        String page = answer.body();
        Set<String> compared = new HashSet<>();
        for (Shown shown : figures(page, "prices")) {
            if (shown.path().startsWith("/store/")) {
                String name = shown.path().substring("/store/".length());
                List<String> expected = List.of(before.at(name).toString(),
                        after.at(name).toString());
                // What changes by itself may have done so in between.
                assertTrue(expected.contains(Json.read(shown.value()).toString())
                        || !expected.get(0).equals(expected.get(1)), shown + " " + expected);
                compared.add(name);
            }
        }
        assertTrue(compared.size() > 20, compared.toString());
        assertTrue(figures(page, "prices").containsAll(List.of(
                new Shown("/store/entries", "200"), new Shown("/cache/writes", "200"),
                new Shown("/memory/cap_bytes", "33554432"),
                new Shown("/store/capacity_bytes", before.at("capacity_bytes").toString()))),
                figures(page, "prices").toString());
        assertTrue(page.contains("Segments on flash") && !page.contains("no map for now"));
        assertTrue(page.contains("flash,partitioned") && page.contains("Healthy"), page);
        isGuarded(answer);
        isNobodys(port);
        // The name of a cache is text, and leads to the page of the one.
        assertFalse(page.contains("<img"), page);
        assertTrue(page.contains(ESCAPED));
        String address = "/?cache=%3Cimg%20src%3Dx%3E%26%22%27";
        assertTrue(page.contains("href=\"" + address + "\""), page);
        String one = get(port, address, "ada:secret").body();
        assertFalse(figures(one, ESCAPED).isEmpty());
        assertTrue(figures(one, "prices").isEmpty());
        AtomicInteger next = new AtomicInteger(200);
        TestGrid.await(() -> {
            rest.post(Rest.cache("prices") + "/" + next.getAndIncrement(), "text/plain", "value");
            return figures(page(port, "ada:secret"), "prices").stream().filter(shown ->
                    shown.path().matches("/second/(read|write)_us/p99")
                            && Double.parseDouble(shown.value()) > 0).count() == 2;
        }, "no second has latencies of reads and of writes");
        // Clients of SQL are served as before.
        grid.ask("sql", "select 1 as found", ada[0], ada[1], ada[2], ada[3]).succeeded();
        grid.stop().succeeded();
        grid.remove();
    }

    private static void isGuarded(HttpResponse<String> answer) {
        String policy = answer.headers().firstValue("Content-Security-Policy").orElseThrow();
        for (String rule : List.of("default-src 'none'", "script-src 'self'", "style-src 'self'",
                "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'")) {
            assertTrue(policy.contains(rule), policy);
        }
        assertFalse(policy.contains("unsafe"), policy);
        assertEquals("no-store", answer.headers().firstValue("Cache-Control").orElseThrow());
        assertEquals("nosniff",
                answer.headers().firstValue("X-Content-Type-Options").orElseThrow());
        // Drawings name the namespace of SVG, which nobody fetches.
        String page = answer.body().replace("http://www.w3.org/2000/svg", "");
        for (String unwanted : List.of(" style=", "<style", "onclick", "http://", "https://")) {
            assertFalse(page.contains(unwanted), unwanted);
        }
        assertEquals(1, page.split("<script", -1).length - 1);
    }

    private void isNobodys(int port) throws Exception {
        for (String path : List.of("/", "/console/now", "/console/style.css",
                "/console/script.js")) {
            for (String stranger : new String[] {null, "ada:wrong", "eve:secret"}) {
                HttpResponse<String> refused = get(port, path, stranger);
                assertEquals(401, refused.statusCode(), path);
                assertFalse(refused.body().contains("data-stat"), path);
            }
            assertEquals(200, get(port, path, "ada:secret").statusCode(), path);
        }
        assertEquals(400, get(port, "/other", "ada:secret").statusCode());
    }

    @Test
    void nodesAreShownWithTheirStoresAndOneThatWithdrewWithTheReason() throws Exception {
        TestGrid grid = new TestGrid();
        grid.startBoth().succeeded();
        grid.ask("deploy", "prices", "--template", "flash,partitioned-with-backup", "--capacity",
                "64MiB", "--memory", "32MiB", "--encoding", "text", "--durability", "synced")
                .succeeded();
        grid.put("prices", 20, "value ");
        int[] ports = {grid.ports().sql(), new Ports(grid.offset + Ports.STEP).sql()};
        String well = get(ports[0], "/", null).body();
        assertTrue(well.contains("Healthy") && well.contains("(2 nodes)"), well);
        assertTrue(well.contains("<a href=\"//127.0.0.1:" + ports[1] + "/\">node-1</a>"), well);
        for (String node : List.of("node-0", "node-1")) {
            assertTrue(well.contains("<tr data-node=\"" + node + "\" data-store=\"prices\">"),
                    node);
        }
        takesNoWrites(grid.member(1).process().orElseThrow());
        grid.rest().post(Rest.cache("prices") + "/new", "text/plain", "value");
        for (int port : ports) {
            TestGrid.await(() -> page(port).contains("The node withdrew: "),
                    "no page tells that node-1 withdrew");
            String page = page(port);
            assertTrue(page.contains("Failing") && !page.contains("Healthy"), page);
        }
        assertTrue(page(ports[0]).contains("Cache prices on node node-1: The node withdrew: "));
        assertTrue(page(ports[0]).contains("<section class=\"store\" data-store=\"prices\">"));
        assertTrue(figures(page(ports[1]), "prices").isEmpty());
        grid.kill(1);
        grid.kill(0);
        grid.remove();
    }

    /** As of a node whose file system has no room for a file's next bytes. */
    private static void takesNoWrites(ProcessHandle node) throws Exception {
        Process limit = new ProcessBuilder("prlimit", "--pid", "" + node.pid(),
                "--fsize=16384:unlimited").inheritIO().start();
        assertEquals(0, limit.waitFor(), "prlimit");
    }

    private String page(int port) {
        return page(port, null);
    }

    private String page(int port, String user) {
        try {
            return get(port, "/", user).body();
        } catch (Exception failure) {
            throw new AssertionError(failure);
        }
    }
}
