package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.persistence.spi.PersistenceException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The messages about a node that refuses or does not answer: a listener takes its place. */
class RestTest {
    /** Of a listener that answers at once, on any machine that works. */
    private static final Duration LONGER_THAN_AN_ANSWER = Duration.ofSeconds(5);

    private final CountDownLatch end = new CountDownLatch(1);
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private HttpServer listener;

    @BeforeEach
    void listen() throws IOException {
        listener = HttpServer.create(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        listener.setExecutor(threads);
        listener.start();
    }

    @AfterEach
    void end() {
        end.countDown();
        listener.stop(0);
        threads.shutdown();
    }

    @Test
    void whoNamesNobodyIsToldToNameAUser() {
        answer(401);
        assertTrue(complaint(null).contains("lets in users only (status 401); name one: --user"));
    }

    /** A user of another password was told to name a user. */
    @Test
    void aUserThatTheNodeDoesNotKnowIsTold() {
        answer(401);
        String told = complaint("ada");
        assertTrue(told.contains("knows no user 'ada' of that password"), told);
        assertFalse(told.contains("users only"), told);
    }

    /** A user without the permission was told to name a user. */
    @Test
    void aUserWhoMayNotDoItIsToldWhatAndOfThePermission() {
        answer(403);
        String told = complaint("ada");
        assertTrue(told.contains("does not let user 'ada' do GET /v2/caches (status 403)"), told);
        assertTrue(told.contains("the permission"), told);
    }

    /** What looked like a variable in it was replaced, by null where there was none. */
    @Test
    void thePasswordOfTheEnvironmentIsTakenAsItIs() throws Exception {
        String password = "a${sys:no.such.property}$b";
        CompletableFuture<String> said = new CompletableFuture<>();
        listener.createContext("/", exchange -> {
            said.complete(exchange.getRequestHeaders().getFirst("Authorization"));
            exchange.sendResponseHeaders(401, -1);
            exchange.close();
        });
        ProcessBuilder list = new ProcessBuilder(TestGrid.program(), "list", "--user", "ada",
                "--server", "127.0.0.1:" + listener.getAddress().getPort());
        list.environment().put("ENTRESOL_GRID_PASSWORD", password);
        assertEquals(2, TestGrid.run(list).status());
        assertEquals("Basic " + Base64.getEncoder().encodeToString(
                ("ada:" + password).getBytes(StandardCharsets.UTF_8)), said.join());
    }

    /** It was said that the node did not answer, and asked whether it was still running. */
    @Test
    void aCacheThatTakesLongToMakeIsSaidToGoOnWithHowToSeeIt() {
        listener.createContext("/", exchange -> {
            if (exchange.getRequestMethod().equals("POST")) {
                await();
            }
            exchange.sendResponseHeaders(404, -1);
            exchange.close();
        });
        Deployment slow = plain();
        Rest rest = new Rest(server(), null, null, LONGER_THAN_AN_ANSWER);
        GridException late = assertThrows(GridException.class, () -> slow.deploy(rest, "slow"));
        String cause = late.getCause().getMessage();
        assertTrue(cause.contains("has not answered POST /v2/caches/slow within"), cause);
        assertTrue(cause.contains("may still do it"), cause);
        String told = late.getMessage();
        assertTrue(told.startsWith("cache 'slow' is still being made, and goes on to be"), told);
        assertTrue(told.contains("entresol-grid list"), told);
        assertTrue(told.endsWith("to take it back: entresol-grid undeploy slow"), told);
    }

    /**
     * Nodes that took a cache back have none of it for a moment before the cluster has forgotten it:
     * Infinispan made none in its place, and complained that there was none.
     */
    @Test
    void aNameIsWaitedForUntilTheClusterHasForgottenItsFormerCache() {
        AtomicInteger posted = new AtomicInteger();
        cluster(posted, 3, () -> "first,");
        plain().deploy(new Rest(server(), null, null), "again");
        assertEquals(3, posted.get());
    }

    /** It is gone as a node could not make it, and would be once more. */
    @Test
    void aCacheThatIsGoneOnceItWasMadeIsNotMadeAgain() {
        AtomicInteger posted = new AtomicInteger();
        cluster(posted, Integer.MAX_VALUE, () -> "attempt " + posted.get());
        GridException gone = assertThrows(GridException.class, () ->
                plain().deploy(new Rest(server(), null, null), "gone"));
        assertTrue(gone.getMessage().contains("ISPN000436"), gone.getMessage());
        assertEquals(2, posted.get());
    }

    private static Deployment plain() {
        return new Deployment(Template.parse("ram"), Encoding.TEXT, null,
                OptionalLong.empty(), List.of(), List.of(), null);
    }

    /** A node that makes the cache when it is asked for the {@code takes}th time. */
    private void cluster(AtomicInteger posted, int takes, Supplier<String> attempt) {
        listener.createContext("/", exchange -> {
            String path = exchange.getRequestURI().getPath();
            boolean isTask = path.contains("/tasks/");
            boolean isPost = exchange.getRequestMethod().equals("POST");
            boolean isMade = isTask || isPost && posted.incrementAndGet() >= takes;
            byte[] body = (isTask ? Json.array(Json.object("node", "node-0", "runs", true,
                    "attempt", attempt.get()).toString()).toString()
                    : isMade ? "" : "ISPN000436: Cache has been requested")
                    .getBytes(StandardCharsets.UTF_8);
            boolean hasBody = isPost && body.length > 0;
            int refusal = isPost ? 400 : 404;
            exchange.sendResponseHeaders(isMade ? 200 : refusal, hasBody ? body.length : -1);
            if (hasBody) {
                exchange.getResponseBody().write(body);
            }
            exchange.close();
        });
    }

    /** {@code list} failed, as the node that was asked still counted on one that had died. */
    @Test
    void nodesAreAskedAgainWhereOneDiedMeanwhile() {
        AtomicInteger asked = new AtomicInteger();
        listener.createContext("/", exchange -> {
            boolean first = asked.getAndIncrement() == 0;
            byte[] body = (first ? "{\"error\": {\"message\": \"ISPN000400: Node node-1 was"
                    + " suspected\", \"cause\": null}}" : "[\"{\\\"node\\\": \\\"node-0\\\"}\"]")
                    .getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(first ? 500 : 200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        List<Json> said = Caches.tell(new Rest(server(), null, null), "some-task");
        assertEquals("node-0", said.get(0).at("node").asString());
        assertEquals(2, asked.get());
    }

    /** It failed where the cache is stopped, and hid why. */
    @Test
    void infoOfACacheFromANodeThatWithdrewSaysWhy() {
        listener.createContext("/", exchange -> {
            String asked = exchange.getRequestURI().toString();
            boolean isRefused = asked.matches(".*action=(size|stats|health)");
            String flash = Json.object("node", "node-0", "caches", Json.object("gone",
                    Json.object(FlashTask.WITHDREW, "its disk failed"))).toString();
            byte[] body = (isRefused ? "ISPN000323: Cache is in 'TERMINATED' state"
                    : asked.contains("/tasks/") ? Json.array(flash).toString()
                    : asked.endsWith("action=config")
                            ? "{\"distributed-cache\": {\"owners\": \"2\"}}" : "[\"gone\"]")
                    .getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(isRefused ? 500 : 200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        TestGrid.Ran info = TestGrid.inside("info", "gone", "--server", server()).succeeded();
        assertTrue(info.out().contains("entries   -\n"), info.out());
        assertTrue(info.out().contains("withdrew  node-0: its disk failed"), info.out());
        assertTrue(TestGrid.inside("info", "gone", "--json", "--server", server()).succeeded().out()
                .contains("\"statistics\":null"));
    }

    /** Two lines of components' names stood before it. */
    @Test
    void aNodeThatCannotStartForAStoreSaysWhatTheStoreSays() {
        String why = "cache orders: the store on /disk cannot be opened: no room";
        Throwable failure = new CacheConfigurationException("ISPN000659: Component"
                + " ComponentWrapper{name=x, instance=y} failed to start",
                new CompletionException(new PersistenceException(why,
                        new IllegalStateException("no room"))));
        assertEquals(why, Node.reason(new ExecutionException(failure)));
    }

    private void answer(int status) {
        listener.createContext("/", exchange -> {
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
    }

    private String complaint(String user) {
        return assertThrows(GridException.class, () -> new Rest(server(), user, "secret")
                .get("/v2/caches")).getMessage();
    }

    private String server() {
        return "127.0.0.1:" + listener.getAddress().getPort();
    }

    private void await() {
        try {
            end.await();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
