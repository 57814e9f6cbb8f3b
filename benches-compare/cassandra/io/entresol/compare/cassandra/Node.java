package io.entresol.compare.cassandra;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.SocketOptions;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import javax.management.JMX;
import javax.management.MBeanServerConnection;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** A node of the comparison: its folder, its process, and connections to it. */
final class Node implements AutoCloseable {
    private static final String TEMPLATES = "/io/entresol/cassandra/node/";
    private static final int HEAP_MEBIBYTES = 512;
    /** With all rows, and what updates leave of older ones. */
    private static final int FLOOR_HEAP_MEBIBYTES = 2048;
    /** What a store needs whatever its rows: write buffers, which are its memtable. */
    private static final int BUFFERS_MEBIBYTES = 24;
    private static final int LEAST_STORE_MEBIBYTES = 36;
    private static final long TICKS_A_SECOND = 100;
    private static final long REST_MILLISECONDS = 500;
    /** Looks one after the other that find nothing done. */
    private static final int RESTING = 4;

    final Variant variant;
    final Cap cap;
    private final Options options;
    private final Path folder;
    private final int port;
    private long pid;
    private Cluster cluster;
    private Session session;
    private JMXConnector connector;
    private InNodeMXBean inside;
    private String recording;

    Node(Variant variant, Options options) {
        this.variant = variant;
        this.options = options;
        folder = options.path("dir").resolve(variant.label());
        port = 19_042 + 10 * variant.ordinal();
        cap = Cap.of("entresol-compare-" + variant.label());
    }

    /** Makes the configuration: the launcher's own, with what the variant has instead. */
    void make(long rowsMemory, long capacity) throws IOException {
        Path conf = Files.createDirectories(folder.resolve("conf"));
        Files.createDirectories(folder.resolve("logs"));
        long mebibytes = Math.max(1, rowsMemory >> 20);
        long store = Math.max(LEAST_STORE_MEBIBYTES, mebibytes + BUFFERS_MEBIBYTES);
        // Without memtables in its heap; so all nodes take as much beside what is for rows.
        int heap = switch (variant) {
            case ENTRESOL -> HEAP_MEBIBYTES - 2 * BUFFERS_MEBIBYTES;
            case FLOOR -> FLOOR_HEAP_MEBIBYTES;
            default -> HEAP_MEBIBYTES;
        };
        if (variant == Variant.FLOOR) {
            fill(folder.resolve("store"), capacity / 2);
        }
        Map<String, String> values = Map.ofEntries(
                Map.entry("token", "" + (Long.MIN_VALUE + 1)),
                Map.entry("seed", "127.0.0.1:" + (port - 2042)),
                Map.entry("address", "127.0.0.1"), Map.entry("storage_port", "" + (port - 2042)),
                Map.entry("cql_port", "" + port), Map.entry("jmx_port", "" + jmxPort()),
                Map.entry("store", folder.resolve("store").toString()),
                Map.entry("capacity", (capacity >> 20) + "MiB"),
                Map.entry("store_memory", store + "MiB"),
                Map.entry("journal", Math.min(256, (capacity >> 20) / 16) + "MiB"),
                Map.entry("heap", heap + "m"), Map.entry("collector", "UseSerialGC"),
                // 32 MiB of it are not a cache of chunks.
                Map.entry("rows_memory", (mebibytes + 32) + "MiB"));
        Files.writeString(conf.resolve("logback.xml"), template("logback.xml"));
        // All of the heap from the start, so that what a node takes says what Java takes.
        String agent = "-XX:+AlwaysPreTouch\n-javaagent:" + options.path("agent") + "\n";
        Files.writeString(conf.resolve("jvm.options"),
                filled(template("jvm.options"), values) + agent);
        Files.writeString(conf.resolve("cassandra.yaml"),
                filled(variant.yaml(template("cassandra.yaml")), values));
    }

    /** Makes a file of so many bytes at least, with something in each of its pages. */
    private static void fill(Path path, long bytes) throws IOException {
        byte[] noise = new byte[1 << 20];
        try (OutputStream file = Files.newOutputStream(path)) {
            for (long written = 0; written < bytes; written += noise.length) {
                ThreadLocalRandom.current().nextBytes(noise);
                file.write(noise);
            }
        }
    }

    private static String filled(String template, Map<String, String> values) {
        String text = template;
        for (Map.Entry<String, String> value : values.entrySet()) {
            text = text.replace("${" + value.getKey() + "}", value.getValue());
        }
        return text;
    }

    private static String template(String name) throws IOException {
        try (InputStream from = Node.class.getResourceAsStream(TEMPLATES + name)) {
            return new String(from.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private int jmxPort() {
        return port - 1843;
    }

    /** Starts the node by the launcher, in its control groups. */
    void start() throws IOException, InterruptedException {
        StringBuilder enter = new StringBuilder();
        if (cap != null) {
            cap.entrances().forEach(place -> enter.append("echo $$ > ").append(place).append("; "));
        }
        launch("sh", "-c", enter + "exec \"$@\"", "sh", options.path("launcher").toString(),
                "start", "--dir", folder.toString());
        pid = Long.parseLong(Files.readString(folder.resolve("node.pid")).strip());
        connect();
    }

    void stop() throws IOException, InterruptedException {
        cluster.close();
        try {
            connector.close();
        } catch (IOException gone) {
            // Then the node has ended by itself, and the launcher says so.
        }
        launch(options.path("launcher").toString(), "stop", "--dir", folder.toString());
    }

    private void launch(String... command) throws IOException, InterruptedException {
        Path said = folder.resolve("launcher.log");
        int status = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(said.toFile()).start().waitFor();
        if (status != 0) {
            throw new IOException(variant.label() + ": " + Arrays.asList(command) + " ended with "
                    + status + ": " + Files.readString(said));
        }
    }

    private void connect() throws IOException {
        cluster = Cluster.builder().addContactPoint("127.0.0.1").withPort(port)
                .withoutMetrics().withoutJMXReporting()
                .withSocketOptions(new SocketOptions().setReadTimeoutMillis(60_000)).build();
        session = cluster.connect();
        connector = JMXConnectorFactory.connect(new JMXServiceURL(
                "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + jmxPort() + "/jmxrmi"));
        MBeanServerConnection server = connector.getMBeanServerConnection();
        try {
            inside = JMX.newMXBeanProxy(server, new ObjectName(InNodeMXBean.NAME),
                    InNodeMXBean.class);
        } catch (MalformedObjectNameException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    Session session() {
        return session;
    }

    InNodeMXBean inside() {
        return inside;
    }

    long pid() {
        return pid;
    }

    /** Begins a recording of what the node's Java does, if one is asked for. */
    void record(String phase) throws IOException, InterruptedException {
        if (options.has("record")) {
            Path folder = Files.createDirectories(options.path("record"));
            launch("jcmd", "" + pid, "JFR.start", "name=" + phase, "settings=profile",
                    "filename=" + folder.resolve(variant.label() + "-" + phase + ".jfr"));
            recording = phase;
        }
    }

    void recorded() throws IOException, InterruptedException {
        if (recording != null) {
            launch("jcmd", "" + pid, "JFR.stop", "name=" + recording);
            recording = null;
        }
    }

    /** What the node has used so far. */
    Figures figures() throws IOException {
        String[] words = afterName(Files.readString(Path.of("/proc/" + pid + "/stat"))).split(" ");
        double processor = (Long.parseLong(words[11]) + Long.parseLong(words[12]))
                * 1e6 / TICKS_A_SECOND;
        long read = 0;
        long written = 0;
        for (String line : Files.readAllLines(Path.of("/proc/" + pid + "/io"))) {
            String[] pair = line.split(": ");
            read += pair[0].equals("read_bytes") ? Long.parseLong(pair[1]) : 0;
            written += pair[0].equals("write_bytes") ? Long.parseLong(pair[1]) : 0;
        }
        long[] reads = cap == null ? new long[] {-1, read} : cap.reads();
        return new Figures(System.nanoTime(), processor, reads[0], reads[1], written);
    }

    private static String afterName(String stat) {
        return stat.substring(stat.lastIndexOf(')') + 2);
    }

    /** Waits until nothing is written, merged or compacted any more. */
    void rest() throws IOException, InterruptedException {
        int resting = 0;
        long written = figures().bytesWritten();
        while (resting < RESTING) {
            Thread.sleep(REST_MILLISECONDS);
            long now = figures().bytesWritten();
            // What a log of diagnostics and a journal's footer take is not work.
            boolean rests = now - written < 256 << 10
                    && (!variant.isStock() || inside.pending() == 0);
            written = now;
            resting = rests ? resting + 1 : 0;
        }
    }

    /** Flushes, and waits until all that follows is done. */
    void settle() throws IOException, InterruptedException {
        if (variant.isStock()) {
            inside.flush();
        }
        rest();
    }

    /** Bytes of flash that the rows take. */
    long space() throws IOException {
        if (variant.isStock()) {
            return inside.bytes();
        }
        try (var files = Files.list(folder)) {
            List<Path> found = new ArrayList<>(files.filter(
                    file -> file.getFileName().toString().startsWith("store")).toList());
            return found.isEmpty() ? 0 : Files.size(found.get(0));
        }
    }

    @Override
    public void close() throws InterruptedException {
        try {
            if (cluster != null) {
                stop();
            }
        } catch (IOException failed) {
            System.err.println(failed.getMessage());
        } finally {
            if (cap != null) {
                cap.close();
            }
        }
    }
}
