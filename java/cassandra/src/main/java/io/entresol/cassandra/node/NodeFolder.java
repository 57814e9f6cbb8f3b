package io.entresol.cassandra.node;

import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.error.YAMLException;

/**
 * The folder of a node: configuration, data, log, and whether the node runs.
 *
 * @param root the folder
 */
record NodeFolder(Path root) {
    /** What a command takes unless {@code --dir} names another folder. */
    static final String DEFAULT = "entresol-cassandra";
    static final String DAEMON = "org.apache.cassandra.service.CassandraDaemon";
    private static final String JMX = "-Dcassandra.jmx.local.port=";
    private static final int CONNECT_MILLISECONDS = 500;

    NodeFolder {
        root = root.toAbsolutePath().normalize();
    }

    /** The nodes of a folder: itself, or those in it; none if nothing was made there. */
    static List<NodeFolder> nodes(Path folder) {
        List<NodeFolder> nodes = new ArrayList<>();
        NodeFolder alone = new NodeFolder(folder);
        if (alone.isMade()) {
            nodes.add(alone);
        }
        for (int number = 1; number <= Start.MOST_NODES; number++) {
            NodeFolder one = of(folder, number);
            if (one.isMade()) {
                nodes.add(one);
            }
        }
        return nodes;
    }

    /** The same; that there are none is an error. */
    static List<NodeFolder> made(Path folder) {
        List<NodeFolder> nodes = nodes(folder);
        if (nodes.isEmpty()) {
            throw new NodeException("there is no node in " + folder.toAbsolutePath()
                    + "; make one: entresol-cassandra start --dir " + folder
                    + ", or name its folder: --dir");
        }
        return nodes;
    }

    static NodeFolder of(Path folder, int number) {
        return new NodeFolder(folder.resolve("node-" + number));
    }

    Path configuration() {
        return root.resolve("conf");
    }

    Path yaml() {
        return configuration().resolve("cassandra.yaml");
    }

    Path options() {
        return configuration().resolve("jvm.options");
    }

    Path logs() {
        return root.resolve("logs");
    }

    Path log() {
        return logs().resolve("system.log");
    }

    /** What Java itself said, and Cassandra before it had a log. */
    Path output() {
        return logs().resolve("output.log");
    }

    Path store() {
        return root.resolve("entresol.store");
    }

    boolean isMade() {
        return Files.exists(yaml());
    }

    /** Makes the configuration, which later starts leave alone. */
    void make(NodePlan plan) {
        if (root.toString().contains(",")) {
            throw new NodeException("the folder is " + root + ", and ',' stands between the"
                    + " devices of a store; name a folder without one: --dir");
        }
        try {
            Files.createDirectories(configuration());
            Files.createDirectories(logs());
            write(plan, "logback.xml");
            write(plan, "jvm.options");
            // The last one: with it the node is made.
            write(plan, "cassandra.yaml");
        } catch (IOException failure) {
            throw new NodeException("cannot write into " + root + ": " + failure
                    + "; name a folder that can be written: --dir", failure);
        }
    }

    private void write(NodePlan plan, String file) throws IOException {
        try (InputStream template = NodeFolder.class.getResourceAsStream(file)) {
            String text = new String(template.readAllBytes(), StandardCharsets.UTF_8);
            for (Map.Entry<String, String> value : plan.values().entrySet()) {
                text = text.replace("${" + value.getKey() + "}", value.getValue());
            }
            Files.writeString(configuration().resolve(file), text);
        }
    }

    /** Where its configuration has the node listen. */
    Ports ports() {
        try (Reader from = Files.newBufferedReader(yaml())) {
            Map<String, Object> yaml = new Yaml().load(from);
            int jmx = Files.readAllLines(options()).stream().filter(line -> line.startsWith(JMX))
                    .map(line -> Integer.parseInt(line.substring(JMX.length()).strip()))
                    .findFirst().orElse(7199);
            return new Ports(String.valueOf(yaml.getOrDefault("rpc_address", "127.0.0.1")),
                    (Integer) yaml.getOrDefault("native_transport_port", Ports.CQL),
                    (Integer) yaml.getOrDefault("storage_port", 7000), jmx);
        } catch (IOException | YAMLException | ClassCastException
                | NumberFormatException failure) {
            throw new NodeException("cannot read the ports in " + configuration() + ": "
                    + failure.getMessage() + "; mend cassandra.yaml or jvm.options there", failure);
        }
    }

    void writePid(long pid) {
        try {
            Files.writeString(root.resolve("node.pid"), pid + "\n");
        } catch (IOException failure) {
            throw new NodeException("cannot write into " + root + ": " + failure, failure);
        }
    }

    void removePid() {
        try {
            Files.deleteIfExists(root.resolve("node.pid"));
        } catch (IOException failure) {
            throw new NodeException("cannot write into " + root + ": " + failure, failure);
        }
    }

    /** The process of the node that runs here. */
    Optional<ProcessHandle> process() {
        Path file = root.resolve("node.pid");
        if (!Files.exists(file)) {
            return Optional.empty();
        }
        try {
            long pid = Long.parseLong(Files.readString(file).strip());
            // Another program may have the number by now.
            return ProcessHandle.of(pid).filter(process -> !hasEnded(process))
                    .filter(this::isNode);
        } catch (IOException | NumberFormatException failure) {
            throw new NodeException("cannot read " + file + ": " + failure.getMessage()
                    + "; remove it if no node runs in " + root, failure);
        }
    }

    /** Whether the node answers CQL clients, as far as a connection tells. */
    boolean serves() {
        if (process().isEmpty()) {
            return false;
        }
        Ports ports = ports();
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(InetAddress.getByName(ports.address()),
                    ports.cql()), CONNECT_MILLISECONDS);
            return true;
        } catch (IOException refused) {
            return false;
        }
    }

    /** Whether a process has ended; one whose parent has taken no note of it is still listed. */
    static boolean hasEnded(ProcessHandle process) {
        Path listed = Path.of("/proc/" + process.pid());
        try (Stream<Path> threads = Files.list(listed.resolve("task"))) {
            String facts = Files.readString(listed.resolve("stat"));
            // The state is the first thread's. Until the others are gone too, they hold the ports.
            return facts.startsWith("Z", facts.lastIndexOf(')') + 2) && threads.count() <= 1;
        } catch (IOException | UncheckedIOException gone) {
            return !process.isAlive();
        }
    }

    private boolean isNode(ProcessHandle process) {
        try {
            List<String> line = List.of(Files.readString(
                    Path.of("/proc/" + process.pid() + "/cmdline")).split("\0"));
            return line.contains(DAEMON) && line.contains(NodeProcess.storage(this));
        } catch (IOException gone) {
            return false;
        }
    }
}
