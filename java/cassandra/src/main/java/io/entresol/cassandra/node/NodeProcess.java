package io.entresol.cassandra.node;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** A node that starts, from the point of view of its launcher. */
final class NodeProcess {
    private static final String SETSID = "/usr/bin/setsid";
    private static final String SERVES = "Starting listening for CQL clients";
    private static final int LINES = 15;

    final NodeFolder folder;
    private final Process process;
    /** Where this start's part of the log begins. */
    private final long logStart;

    private NodeProcess(NodeFolder folder, Process process, long logStart) {
        this.folder = folder;
        this.process = process;
        this.logStart = logStart;
    }

    /** Starts the node, which outlives the launcher and its terminal. */
    static NodeProcess start(NodeFolder folder) {
        folder.ports().check();
        try {
            Files.createDirectories(folder.logs());
            long logStart = size(folder.log());
            ProcessBuilder builder = new ProcessBuilder(command(folder))
                    .redirectInput(new File("/dev/null"))
                    .redirectErrorStream(true)
                    .redirectOutput(folder.output().toFile());
            Process process = builder.start();
            folder.writePid(process.pid());
            return new NodeProcess(folder, process, logStart);
        } catch (IOException failure) {
            throw new NodeException("cannot start a node in " + folder.root() + ": "
                    + failure.getMessage(), failure);
        }
    }

    /** How a node's own process can be told from others. */
    static String storage(NodeFolder folder) {
        return "-Dcassandra.storagedir=" + folder.root();
    }

    private static List<String> command(NodeFolder folder) throws IOException {
        List<String> command = new ArrayList<>();
        if (Files.isExecutable(Path.of(SETSID))) {
            command.add(SETSID);
        }
        command.addAll(Java17.command());
        command.add(Java17.measuringAgent());
        command.addAll(List.of("-Xss256k",
                "-Dio.netty.tryReflectionSetAccessible=true",
                "-Dio.netty.allocator.useCacheForAllThreads=true",
                "-Dio.netty.allocator.maxOrder=11",
                "-Dcassandra-foreground=yes",
                "-Dcassandra.config=" + folder.yaml().toUri(),
                "-Dcassandra.logdir=" + folder.logs(),
                "-Dlogback.configurationFile=" + folder.configuration().resolve("logback.xml"),
                storage(folder)));
        // Last, so that the user's word counts.
        Files.readAllLines(folder.options()).stream().map(String::strip)
                .filter(line -> line.startsWith("-")).forEach(command::add);
        command.addAll(List.of("-cp", Java17.classPath(folder.root()), NodeFolder.DAEMON));
        return command;
    }

    /** Whether CQL clients can connect; a node that has ended says why. */
    boolean serves() {
        boolean alive = process.isAlive();
        // A long log may have moved its line away.
        if (log().anyMatch(line -> line.contains(SERVES)) || alive && folder.serves()) {
            return true;
        }
        if (!alive) {
            throw new NodeException("the node in " + folder.root() + " did not start. The end of "
                    + folder.log() + ":\n" + lastWords());
        }
        return false;
    }

    /** Bytes that this start has written to the log. */
    long progress() {
        return size(folder.log()) - logStart;
    }

    void end() {
        process.destroy();
    }

    /** The last lines of the log without stacks, and of what Java itself said. */
    String lastWords() {
        List<String> lines = new ArrayList<>(last(log()));
        try (Stream<String> output = Files.lines(folder.output(), StandardCharsets.ISO_8859_1)) {
            lines.addAll(last(output));
        } catch (IOException none) {
            // Then the log is all there is.
        }
        return "  " + String.join("\n  ", lines);
    }

    private static List<String> last(Stream<String> lines) {
        List<String> said = lines.filter(line -> !line.startsWith("\tat ")
                        && !line.startsWith("WARNING: ") && !line.isBlank())
                .map(line -> line.length() > 400 ? line.substring(0, 400) + "…" : line).toList();
        return said.subList(Math.max(0, said.size() - LINES), said.size());
    }

    private Stream<String> log() {
        try (RandomAccessFile file = new RandomAccessFile(folder.log().toFile(), "r")) {
            // A log that was moved away meanwhile begins anew.
            long from = file.length() < logStart ? 0 : logStart;
            byte[] bytes = new byte[(int) Math.min(file.length() - from, 8 << 20)];
            file.seek(from);
            file.readFully(bytes);
            return new String(bytes, StandardCharsets.UTF_8).lines();
        } catch (IOException none) {
            return Stream.empty();
        }
    }

    private static long size(Path file) {
        try {
            return Files.exists(file) ? Files.size(file) : 0;
        } catch (IOException gone) {
            return 0;
        }
    }
}
