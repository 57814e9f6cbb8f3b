package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.infinispan.commons.dataconversion.internal.Json;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The nodes that {@code stop} asks: processes that look like nodes, and a listener in place of
 * REST.
 */
class StopTest {
    private static final int CLUSTER_PORT = 7801;

    @TempDir
    Path folder;

    private final List<Process> processes = new ArrayList<>();
    private final List<String> asked = new CopyOnWriteArrayList<>();
    private HttpServer listener;
    private int stopped;

    @BeforeEach
    void listen() throws IOException {
        listener = HttpServer.create(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        listener.createContext("/", exchange -> {
            asked.add(exchange.getRequestMethod() + " " + exchange.getRequestURI());
            if (exchange.getRequestMethod().equals("POST")) {
                processes.get(stopped++).destroy();
            }
            byte[] body = Json.object("cluster_members_physical_addresses",
                    Json.array("127.0.0.1:" + CLUSTER_PORT)).toString()
                    .getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        listener.start();
    }

    @AfterEach
    void end() {
        listener.stop(0);
        processes.forEach(Process::destroyForcibly);
    }

    /** The file of a killed node named the port of another grid: that one was stopped. */
    @Test
    void whatAKilledNodeLeftIsNotAskedAndNodesThatStillStartEnd() throws Exception {
        new NodeFolder(folder).writeRunning(facts(1, CLUSTER_PORT));
        NodeFolder first = node("node-0");
        first.writeRunning(facts(1, CLUSTER_PORT));
        node("node-1");
        assertEquals("stopped: 2\n", stop("--dir", folder + "").out());
        assertEquals(List.of(), asked);
        assertEnded(processes);
        assertTrue(first.readRunning().isEmpty());
        assertTrue(new NodeFolder(folder).readRunning().isEmpty());
    }

    /** The number of a dead node was that of one whose folder's name begins like its own. */
    @Test
    void theProcessOfAnotherFolderIsNotThatOfTheNode() throws Exception {
        NodeFolder dead = new NodeFolder(folder.resolve("node"));
        NodeFolder other = node("node-b");
        dead.writePid(processes.get(0).pid());
        assertTrue(dead.process().isEmpty());
        assertTrue(other.process().isPresent());
    }

    @Test
    void nodesThatServeStopAsAClusterAndThoseThatStillStartWithThem() throws Exception {
        NodeFolder serving = node("node-3");
        serving.writeRunning(facts(processes.get(0).pid(), CLUSTER_PORT));
        node("node-1");
        assertEquals("stopped: 2\n", stop("--dir", folder + "").out());
        assertEquals("POST /rest/v2/cluster?action=stop", asked.get(asked.size() - 1));
        assertEnded(processes);
    }

    /** The second was told nothing, waited for, and said to have been told. */
    @Test
    void nodesOfAFolderThatAreNoClusterAreAllToldToStop() throws Exception {
        node("node-0").writeRunning(facts(processes.get(0).pid(), CLUSTER_PORT));
        node("node-1").writeRunning(facts(processes.get(1).pid(), CLUSTER_PORT + 1));
        assertEquals("stopped: 2\n", stop("--dir", folder + "").out());
        assertEquals(2, asked.stream().filter(each -> each.startsWith("POST")).count());
        assertEnded(processes);
    }

    /** It waited for the node of the default folder, which was told nothing. */
    @Test
    void aClusterIsStoppedWithoutWaitingForNodesThatAreNotInIt() throws Exception {
        NodeFolder member = node("node-0");
        member.writeRunning(facts(processes.get(0).pid(), CLUSTER_PORT));
        NodeFolder other = node("node-1");
        other.writeRunning(facts(processes.get(1).pid(), CLUSTER_PORT + 1));
        assertEquals("the cluster stops\n", stop("--dir", folder + "", "--cluster", "--server",
                "127.0.0.1:" + listener.getAddress().getPort()).out());
        assertEnded(processes.subList(0, 1));
        assertTrue(processes.get(1).isAlive());
        assertTrue(member.readRunning().isEmpty());
        assertTrue(other.readRunning().isPresent());
    }

    /**
     * It waited for a minute, and said that the process still ran: in a container whose first
     * process takes no note of those that ended.
     */
    @Test
    void aNodeThatHasEndedIsNotWaitedForThoughNobodyTakesNoteOfItsEnd() throws Exception {
        NodeFolder node = new NodeFolder(folder.resolve("node-0"));
        Process careless = new ProcessBuilder("sh", "-c", "exec 3<&0;"
                + " sh -c 'read line' \"$0\" \"$1\" <&3 & echo $!; exec sleep 1000 >/dev/null",
                Node.class.getName(), node.root().toString()).start();
        processes.add(careless);
        long pid = Long.parseLong(careless.inputReader().readLine());
        node.writePid(pid);
        assertEquals("stopped: 1\n", stop("--dir", folder + "").out());
        assertTrue(ProcessHandle.of(pid).orElseThrow().isAlive(), "somebody took note");
    }

    /** The first one, which was dead, was asked, and the others left one by one. */
    @Test
    void aLauncherHasANodeThatIsAliveStopTheCluster() throws Exception {
        Path told = folder.resolve("told");
        Process dead = new ProcessBuilder("true").start();
        dead.waitFor();
        Process alive = new ProcessBuilder("sh", "-c", "read line && echo > " + told).start();
        processes.addAll(List.of(dead, alive));
        Start.stop(processes.stream().map(each -> new NodeProcess(null, each)).toList(), true);
        assertTrue(Files.exists(told), "nobody was told to stop the cluster");
    }

    private static void assertEnded(List<Process> ended) throws InterruptedException {
        for (Process process : ended) {
            // By a signal: nobody writes the line that they read.
            assertTrue(process.waitFor() != 0);
        }
    }

    private static TestGrid.Ran stop(String... options) {
        List<String> all = new ArrayList<>(List.of("stop"));
        all.addAll(List.of(options));
        return TestGrid.inside(all.toArray(String[]::new)).succeeded();
    }

    /** Waits for an input that never comes, by a command line like that of a node. */
    private NodeFolder node(String name) throws IOException {
        NodeFolder node = new NodeFolder(folder.resolve(name));
        Process process = new ProcessBuilder("sh", "-c", "read line", Node.class.getName(),
                node.root().toString()).start();
        processes.add(process);
        node.writePid(process.pid());
        return node;
    }

    private Json facts(long pid, int cluster) {
        return Json.object("pid", pid, "address", "127.0.0.1",
                "rest", listener.getAddress().getPort(), "cluster", cluster);
    }
}
