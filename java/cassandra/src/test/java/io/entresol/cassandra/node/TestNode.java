package io.entresol.cassandra.node;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.datastax.driver.core.Cluster;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** A node that tests start by the program, as people do, with ports of its own. */
final class TestNode implements AutoCloseable {
    private static final long LOOK_NANOS = 20_000_000;

    final NodeFolder folder;
    final int port = freePort();

    /** A node in a folder below target/, which is emptied. */
    TestNode(String name) throws IOException {
        folder = new NodeFolder(Path.of("target", name));
        remove(folder.root());
    }

    /** Runs the program; what it said. */
    String run(String... arguments) throws Exception {
        return run(folder.root(), arguments);
    }

    /** Runs the program on a folder; what it said. */
    static String run(Path folder, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of("bin/entresol-cassandra", arguments[0],
                "--dir", folder.toString()));
        command.addAll(List.of(arguments).subList(1, arguments.length));
        Path said = folder.resolveSibling(folder.getFileName() + ".said");
        Process process = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(said.toFile()).start();
        int status = process.waitFor();
        String text = Files.readString(said, StandardCharsets.UTF_8);
        assertEquals(0, status, () -> String.join(" ", command) + " said: " + text);
        return text;
    }

    void make() throws Exception {
        run("start", "--memory", "1g", "--capacity", "512MiB", "--port", "" + port);
        addOption(folder, "-XX:TieredStopAtLevel=1");
    }

    /** A client; its caller closes it. */
    Cluster client() {
        return Cluster.builder().addContactPoint("127.0.0.1").withPort(port).withoutMetrics()
                .withoutJMXReporting().build();
    }

    void edit(String text, String by) throws IOException {
        edit(folder, text, by);
    }

    /** Replaces a text of a node's configuration, which stands there once. */
    static void edit(NodeFolder folder, String text, String by) throws IOException {
        String yaml = Files.readString(folder.yaml());
        assertEquals(2, yaml.split(Pattern.quote(text), -1).length, text);
        Files.writeString(folder.yaml(), yaml.replace(text, by));
    }

    /** Adds an option of a node's virtual machine. */
    static void addOption(NodeFolder folder, String option) throws IOException {
        Path options = folder.options();
        Files.writeString(options, Files.readString(options) + option + "\n");
    }

    void kill() {
        kill(folder);
    }

    /** Kills a node, and removes the write buffers that only its next start would take up. */
    static void end(NodeFolder folder) {
        List<Path> buffers = folder.process().map(TestNode::buffers).orElse(List.of());
        kill(folder);
        buffers.forEach(path -> path.toFile().delete());
    }

    /** The files in memory that a node maps. */
    static List<Path> buffers(ProcessHandle process) {
        try (Stream<String> mapped = Files.lines(Path.of("/proc/" + process.pid() + "/maps"))) {
            return mapped.filter(line -> line.contains("/dev/shm/entresol-"))
                    .map(line -> Path.of(line.substring(line.indexOf("/dev/shm/")))).distinct()
                    .toList();
        } catch (IOException gone) {
            return List.of();
        }
    }

    static void kill(NodeFolder folder) {
        folder.process().ifPresent(process -> {
            process.destroyForcibly();
            while (!NodeFolder.hasEnded(process)) {
                LockSupport.parkNanos(LOOK_NANOS);
            }
        });
    }

    @Override
    public void close() {
        end(folder);
    }

    /** A port for CQL so that the others, which stand at a distance, are free as well. */
    static int freePort() {
        while (true) {
            Ports ports = Ports.of(1, ThreadLocalRandom.current().nextInt(14_000, 32_000));
            if (isFree(ports.cql()) && isFree(ports.storage()) && isFree(ports.jmx())) {
                return ports.cql();
            }
        }
    }

    private static boolean isFree(int port) {
        try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            return true;
        } catch (IOException taken) {
            return false;
        }
    }

    static void remove(Path folder) throws IOException {
        if (Files.exists(folder)) {
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        }
    }
}
