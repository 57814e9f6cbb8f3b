package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertTrue;
import static org.testng.Assert.fail;

import io.entresol.KilledStores;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Three nodes on the loopback interface, each a JVM with a folder that outlives it. */
final class Grid implements AutoCloseable {
    /** Fails what hangs; nothing takes as long on any machine that works. */
    private static final long DEADLINE_SECONDS = 180;

    private final Path folder;
    private final Shape shape;
    private final List<Node> nodes = new ArrayList<>();
    /** What each key was last acknowledged as and tried as; 0: absent. */
    private final Map<String, int[]> expected = new HashMap<>();

    /**
     * How nodes are configured.
     *
     * @param recovery whether the cluster recovers from its stores
     * @param valueBytes of each value
     * @param capacities of the nodes' stores
     */
    record Shape(boolean recovery, int valueBytes, List<String> capacities) {
        /** Three nodes that recover, with small values and room for many. */
        static final Shape USUAL = new Shape(true, 300, List.of("64MiB", "64MiB", "64MiB"));
    }

    Grid(Path folder, Shape shape) throws IOException {
        this.folder = folder;
        this.shape = shape;
        int size = shape.capacities().size();
        Files.createDirectories(folder);
        List<Integer> ports = freePorts(size);
        StringBuilder hosts = new StringBuilder();
        for (int port : ports) {
            hosts.append(hosts.isEmpty() ? "" : ",").append("127.0.0.1[").append(port).append(']');
        }
        for (int number = 0; number < size; number++) {
            Path stack = folder.resolve("jgroups-" + number + ".xml");
            Files.writeString(stack, STACK.formatted(ports.get(number), hosts));
            nodes.add(new Node(number, stack));
        }
    }

    Node node(int number) {
        return nodes.get(number);
    }

    /** Starts nodes at once, and waits until the cache serves on each with so many members. */
    void start(int members, int... numbers) throws Exception {
        for (int number : numbers) {
            node(number).launch("10m", "refuse");
        }
        awaitServing(members, numbers);
    }

    /**
     * Waits until the cache serves on each of these nodes with so many members. One that has it
     * may refuse for a moment what others ask (ISPN000689): it is asked about itself.
     */
    void awaitServing(int members, int... numbers) throws Exception {
        for (int number : numbers) {
            node(number).hear("ready");
        }
        for (int number : numbers) {
            node(number).tell("await " + members);
        }
    }

    /**
     * Kills nodes, one right after the other. What they said before counts: the process itself
     * would throw away what was not read.
     */
    void kill(int... numbers) throws Exception {
        for (int number : numbers) {
            node(number).process.toHandle().destroyForcibly();
        }
        for (int number : numbers) {
            node(number).drain();
        }
    }

    void put(int by, int from, int to, int number) throws Exception {
        node(by).tell("put " + from + " " + to + " " + number);
        expect(from, to, number);
    }

    /** Puts until one is refused; what was said of it, empty if none was. */
    String attempt(int by, int from, int to, int number) throws Exception {
        int next = from;
        for (String line : node(by).tell("attempt " + from + " " + to + " " + number)) {
            if (line.equals("put " + next)) {
                expect(next, ++next, number);
            } else if (line.startsWith("failed")) {
                expected.computeIfAbsent("key-" + next, key -> new int[2])[1] = number;
                return line;
            }
        }
        return "";
    }

    /** Every key of the range is, as that node gets it, as it was last acknowledged. */
    void get(int by, int from, int to) throws Exception {
        List<String> heard = node(by).tell("get " + from + " " + to);
        List<String> wrong = new ArrayList<>();
        for (int key = from; key < to; key++) {
            String line = "got key-" + key + " " + expected.get("key-" + key)[0];
            if (!heard.contains(line)) {
                wrong.add(line);
            }
        }
        assertTrue(wrong.isEmpty(), "as node " + by + " gets it: missing " + wrong + " in "
                + heard);
    }

    void remove(int by, int from, int to) throws Exception {
        node(by).tell("remove " + from + " " + to);
        expect(from, to, 0);
    }

    /** Puts again what was being changed in a kill: its owners may differ until then. */
    void settle(int by) throws Exception {
        for (Map.Entry<String, int[]> each : expected.entrySet()) {
            if (each.getValue()[0] != each.getValue()[1]) {
                node(by).tell("set " + each.getKey());
                each.setValue(new int[] {1, 1});
            }
        }
    }

    /**
     * Every key is, as that node sees it, as it was last acknowledged, or as it was being changed
     * to; the sizes agree with it, and all {@code owners} copies are there.
     */
    void check(int by, int owners, int... members) throws Exception {
        Map<String, Integer> found = new HashMap<>();
        int size = -1;
        for (String line : node(by).tell("dump")) {
            String[] words = line.split(" ");
            if (words[0].equals("value")) {
                found.put(words[1], Integer.parseInt(words[2]));
            } else if (words[0].equals("size")) {
                size = Integer.parseInt(words[1]);
            }
        }
        List<String> wrong = new ArrayList<>();
        expected.forEach((key, numbers) -> {
            int is = found.getOrDefault(key, 0);
            if (is != numbers[0] && is != numbers[1]) {
                wrong.add(key + " is " + is + ", acknowledged " + numbers[0] + ", tried "
                        + numbers[1] + where(key));
            }
        });
        found.keySet().stream().filter(key -> !expected.containsKey(key))
                .forEach(key -> wrong.add(key + " was never put"));
        assertTrue(wrong.isEmpty(), "as node " + by + " sees it: " + wrong);
        assertEquals(size, found.size(), "size, as node " + by + " sees it");
        if (owners > 0) {
            int copies = 0;
            for (int member : members) {
                copies += node(member).tell("local").stream()
                        .filter(line -> line.startsWith("local "))
                        .mapToInt(line -> Integer.parseInt(line.substring(6))).sum();
            }
            assertEquals(copies, owners * size, "copies on all nodes");
        }
    }

    /** What each node itself has of a key that is wrong. */
    private String where(String key) {
        StringBuilder all = new StringBuilder();
        for (Node node : nodes) {
            if (node.process != null && node.process.isAlive()) {
                try {
                    all.append(", node ").append(node.number).append(": ")
                            .append(node.tell("where " + key).get(0));
                } catch (Exception | AssertionError failure) {
                    all.append(failure);
                }
            }
        }
        return all.toString();
    }

    @Override
    public void close() throws Exception {
        for (Node node : nodes) {
            if (node.process != null) {
                node.process.destroyForcibly();
                node.process.waitFor();
            }
        }
        KilledStores.removeBuffers(folder);
    }

    private void expect(int from, int to, int number) {
        for (int key = from; key < to; key++) {
            expected.put("key-" + key, new int[] {number, number});
        }
    }

    /** Ports below those that the system gives to connections: a node that starts late has its. */
    private static List<Integer> freePorts(int count) {
        List<Integer> ports = new ArrayList<>();
        int port = (int) (12_000 + ProcessHandle.current().pid() * 7 % 18_000);
        for (; ports.size() < count; port++) {
            // A node listens on the port and, for its neighbour's failure detection, 100 above.
            if (isFree(port) && isFree(port + 100)) {
                ports.add(port);
            }
        }
        return ports;
    }

    private static boolean isFree(int port) {
        try {
            new ServerSocket(port, 1, InetAddress.getLoopbackAddress()).close();
            return true;
        } catch (IOException taken) {
            return false;
        }
    }

    /** A node, whether or not it runs. */
    final class Node {
        private final int number;
        private final Path stack;
        private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        private Process process;
        private PrintStream commands;
        private Thread reader;
        private boolean loading;

        private Node(int number, Path stack) {
            this.number = number;
            this.stack = stack;
        }

        /** Starts its JVM, which goes on by itself. */
        void launch(String timeout, String missing) throws IOException {
            List<String> command = new ArrayList<>();
            command.add(System.getProperty("java.home") + File.separator + "bin/java");
            for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
                if (flag.startsWith("-Dentresol.heap.native=jni")
                        || flag.contains("native-access")
                        || flag.contains("Redefinition") && GridNode.BLOCKING_CALLS) {
                    command.add(flag);
                }
            }
            command.add("-D" + GridNode.LOOKS + "=" + GridNode.BLOCKING_CALLS);
            String path = System.getProperty(
                    "surefire.test.class.path", System.getProperty("java.class.path"));
            command.addAll(List.of("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                    "-Djava.net.preferIPv4Stack=true", "-Djgroups.bind_addr=127.0.0.1",
                    "-cp", path, GridNode.class.getName(),
                    folder.resolve("node-" + number).toString(), "node-" + number,
                    stack.toString(), timeout, missing, "" + shape.recovery(),
                    "" + shape.valueBytes(), shape.capacities().get(number)));
            lines.clear();
            process = new ProcessBuilder(command).redirectError(
                    ProcessBuilder.Redirect.appendTo(trace().toFile())).start();
            commands = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
            Process launched = process;
            reader = new Thread(() -> read(launched));
            reader.start();
        }

        /** Does a command to its end; what it said meanwhile. */
        List<String> tell(String command) throws Exception {
            loading = command.startsWith("load ") || loading && !command.equals("rest");
            commands.println(command);
            return hear("done");
        }

        /** Waits for a line that begins so; what it said before, and this line at the end. */
        List<String> hear(String beginning) throws Exception {
            List<String> heard = new ArrayList<>();
            while (true) {
                String line = lines.poll(DEADLINE_SECONDS, TimeUnit.SECONDS);
                if (line == null || line.equals("ended") || line.startsWith("refused")
                        && !beginning.equals("refused")) {
                    fail("node " + number + ": expected '" + beginning + "', found "
                            + (line == null ? "nothing in time" : line) + " after "
                            + heard + "\n" + Files.readString(trace()));
                }
                heard.add(line);
                if (line.startsWith(beginning)) {
                    return heard;
                }
            }
        }

        /** Waits until so many changes of the node's own load were acknowledged. */
        void hearAcknowledged(int count) throws Exception {
            for (int heard = 0; heard < count; heard++) {
                hear("ack");
            }
        }

        /** The file of its store. */
        Path store() {
            return folder.resolve("node-" + number).resolve("grid/entresol/entresol.data");
        }

        /** What it wrote to its log. */
        String said() throws IOException {
            return Files.readString(trace());
        }

        boolean isLoading() {
            return loading;
        }

        long pid() {
            return process.pid();
        }

        private void drain() throws InterruptedException {
            process.waitFor();
            reader.join();
            lines.clear();
        }

        private Path trace() {
            return folder.resolve("trace-" + number);
        }

        private void read(Process of) {
            try (BufferedReader out = new BufferedReader(
                    new InputStreamReader(of.getInputStream(), StandardCharsets.UTF_8))) {
                for (String line = out.readLine(); line != null; line = out.readLine()) {
                    note(line);
                    lines.add(line);
                }
            } catch (IOException cut) {
                lines.add("ended");
                return;
            }
            lines.add("ended");
        }

        /** Keys of a node's own load are changed by it alone, in order. */
        private void note(String line) {
            String[] words = line.split(" ");
            boolean acknowledged = words[0].equals("ack");
            if (acknowledged || words[0].equals("try")) {
                int put = Integer.parseInt(words[2]);
                int is = put % 5 == 0 ? 0 : put;
                synchronized (expected) {
                    int[] numbers = expected.computeIfAbsent(words[1], key -> new int[2]);
                    numbers[1] = is;
                    numbers[0] = acknowledged ? is : numbers[0];
                }
            }
        }
    }

    private static final String STACK = """
            <config xmlns="urn:org:jgroups">
              <TCP bind_addr="127.0.0.1" bind_port="%d" port_range="0" diag.enabled="false"
                   thread_pool.min_threads="0" thread_pool.max_threads="50"/>
              <RED/>
              <TCPPING initial_hosts="%s" port_range="0"/>
              <MERGE3 min_interval="500" max_interval="1500"/>
              <FD_SOCK2/>
              <FD_ALL3 timeout="20000" interval="5000"/>
              <VERIFY_SUSPECT2 timeout="500"/>
              <pbcast.NAKACK2 use_mcast_xmit="false"/>
              <UNICAST3/>
              <pbcast.STABLE/>
              <pbcast.GMS print_local_addr="false" join_timeout="1000"/>
              <UFC max_credits="4M"/>
              <MFC max_credits="4M"/>
              <FRAG4/>
            </config>
            """;
}
