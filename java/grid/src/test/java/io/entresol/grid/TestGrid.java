package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.entresol.KilledStores;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/** A node in a JVM of its own, started and stopped by the program that people start. */
final class TestGrid {
    private static final Path HOME = Path.of(System.getProperty("entresol.grid.home"));
    /** Nodes of tests live for seconds: a better compiler would take most of their start. */
    private static final String FLAGS = "-XX:TieredStopAtLevel=1";

    /** Room for the nodes of a cluster. */
    private static final int BLOCK = 5 * Ports.STEP;
    /** All ports stay below those that the system gives to connections. */
    private static final int OFFSET_MAX = 20_000;
    private static final FileChannel CLAIMS = claims();
    private static final long MOMENT_MILLIS = 20;
    /** Fails what hangs; nothing takes as long on any machine that works. */
    private static final Duration PATIENCE = Duration.ofSeconds(180);

    final Path folder;
    final int offset;

    TestGrid() throws IOException {
        this(freeOffset(1000));
    }

    TestGrid(int offset) throws IOException {
        folder = Files.createTempDirectory("entresol-grid");
        this.offset = offset;
    }

    /** What a command did. */
    record Ran(int status, String out, String err) {
        Ran succeeded() {
            if (status != 0) {
                throw new AssertionError("status " + status + "\n" + out + err);
            }
            return this;
        }
    }

    Ran start(String... more) throws Exception {
        List<String> all = new ArrayList<>(List.of("start", "--dir", folder + "/node",
                "--port-offset", "" + offset, "--memory", "512m", "--endpoint-capacity", "64MiB",
                "--endpoint-memory", "32MiB", "--detach"));
        all.addAll(List.of(more));
        return program(all.toArray(String[]::new));
    }

    Ran stop() throws Exception {
        return program("stop", "--dir", folder + "/node");
    }

    /** Starts one of two nodes, which joins the other. */
    Ran startMember(int number) {
        return startMember(number, "");
    }

    /** The same while the other is down and stays so meanwhile: it need not be waited for. */
    Ran startMemberAlone(int number) {
        return startMember(number, "-Djgroups.join_timeout=100ms");
    }

    private Ran startMember(int number, String flags) {
        int[] offsets = {offset, offset + Ports.STEP};
        ProcessBuilder builder = new ProcessBuilder(program(), "start", "--dir",
                member(number).root() + "", "--name", "node-" + number, "--port-offset",
                "" + offsets[number], "--join",
                "127.0.0.1:" + new Ports(offsets[1 - number]).cluster(), "--memory", "384m",
                "--endpoint-template", "ram", "--detach");
        builder.environment().put("ENTRESOL_GRID_FLAGS", flags);
        try {
            return run(builder);
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    /** Starts two nodes at once, as one launcher does. */
    Ran startBoth() throws Exception {
        return program("start", "--dir", folder + "/cluster", "--nodes", "2", "--port-offset",
                "" + offset, "--memory", "384m", "--endpoint-template", "ram", "--detach");
    }

    /** The folder of one of several nodes. */
    NodeFolder member(int number) {
        return new NodeFolder(folder.resolve("cluster/node-" + number));
    }

    /** Has a member leave in good order: the other goes on. */
    void leave(int number) {
        ProcessHandle process = member(number).process().orElseThrow();
        process.destroy();
        awaitEnd(process);
    }

    /** Of a node, which is no child of this process's: {@code onExit} looks now and then only. */
    static void awaitEnd(ProcessHandle process) {
        await(() -> NodeFolder.hasEnded(process) || isOver(process.onExit()),
                "process " + process.pid() + " goes on");
    }

    /** Whether that is done, for which this waits a moment: who asks again takes no processor. */
    static boolean isOver(CompletableFuture<?> awaited) {
        try {
            awaited.get(MOMENT_MILLIS, TimeUnit.MILLISECONDS);
            return true;
        } catch (TimeoutException goesOn) {
            return false;
        } catch (InterruptedException | ExecutionException failure) {
            throw new AssertionError(failure);
        }
    }

    void kill(int number) {
        ProcessHandle process = member(number).process().orElseThrow();
        process.destroyForcibly();
        awaitEnd(process);
    }

    /** The file of the program. */
    static String program() {
        return HOME.resolve("bin/entresol-grid").toString();
    }

    /** The program, as a process. */
    static Ran program(String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(program()));
        command.addAll(List.of(arguments));
        return run(new ProcessBuilder(command));
    }

    static Ran run(ProcessBuilder builder) throws Exception {
        Path errors = Files.createTempFile("entresol-grid", ".err");
        Process process = startProcess(builder.redirectError(errors.toFile()));
        String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        int status = process.waitFor();
        String err = Files.readString(errors);
        Files.delete(errors);
        return new Ran(status, out, err);
    }

    /** With this JVM's Java, as nodes of tests are to run. */
    static Process startProcess(ProcessBuilder builder) throws IOException {
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        // Java takes it in the launcher and in the nodes.
        builder.environment().put("JDK_JAVA_OPTIONS", FLAGS);
        builder.environment().put("XDG_CACHE_HOME", HOME.resolve("target/cache").toString());
        return builder.start();
    }

    /** A command that asks the running node, within this process. */
    Ran ask(String... arguments) {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--server", server()));
        return inside(all.toArray(String[]::new));
    }

    /** A command within this process. */
    static Ran inside(String... arguments) {
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        ByteArrayOutputStream complained = new ByteArrayOutputStream();
        System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(complained, true, StandardCharsets.UTF_8));
        try {
            int status = Launcher.run(arguments);
            return new Ran(status, said.toString(StandardCharsets.UTF_8),
                    complained.toString(StandardCharsets.UTF_8));
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
    }

    /** Waits until that holds; {@code lacking} says what did not come to be. */
    static void await(BooleanSupplier holds, String lacking) {
        assertTimeoutPreemptively(PATIENCE, () -> {
            while (!holds.getAsBoolean()) {
                Thread.onSpinWait();
            }
        }, lacking);
    }

    Ports ports() {
        return new Ports(offset);
    }

    String server() {
        return "127.0.0.1:" + ports().main();
    }

    Rest rest() {
        return new Rest(server(), null, null);
    }

    /** That of one of several nodes. */
    Rest rest(int number) {
        return new Rest("127.0.0.1:" + new Ports(offset + number * Ports.STEP).main(), null, null);
    }

    /** Puts texts under the numbers from 0 on. */
    void put(String name, int entries, String value) {
        Rest rest = rest();
        for (int key = 0; key < entries; key++) {
            rest.post(Rest.cache(name) + "/" + key, "text/plain", value + key);
        }
    }

    /** A cache of texts that recovers. */
    void deployRecovering(String name, String capacity) {
        ask("deploy", name, "--template", "flash,partitioned-with-backup", "--recovery",
                "--capacity", capacity, "--memory", "32MiB", "--encoding", "text").succeeded();
    }

    void remove() throws IOException {
        remove(folder);
    }

    /** Whoever makes a class archive outlives its node and removes its list of classes by itself. */
    static void remove(Path folder) throws IOException {
        KilledStores.removeBuffers(folder);
        Files.walkFileTree(folder, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
                    throws IOException {
                Files.deleteIfExists(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException failure)
                    throws IOException {
                if (failure instanceof NoSuchFileException) {
                    return FileVisitResult.CONTINUE;
                }
                throw failure;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, IOException failure)
                    throws IOException {
                if (failure != null) {
                    throw failure;
                }
                Files.delete(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }

    /** The first from there on with which a node finds all its ports free, and so do others. */
    static int freeOffset(int from) {
        return IntStream.iterate(from, offset -> offset < OFFSET_MAX, offset -> offset + BLOCK)
                .filter(TestGrid::claim).filter(TestGrid::isFree).findFirst().orElseThrow();
    }

    /**
     * Has other runs of these tests, at the same time, leave the offset and those above it alone:
     * until a node listens, which takes seconds, they find its ports free, too.
     */
    private static boolean claim(int offset) {
        try {
            return CLAIMS.tryLock(offset, BLOCK, false) != null;
        } catch (OverlappingFileLockException own) {
            // Of a grid of this run's, which has ended if its ports are free.
            return true;
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** All offsets, a byte each; a lock ends with its process. */
    private static FileChannel claims() {
        try {
            return FileChannel.open(Path.of(System.getProperty("java.io.tmpdir"),
                    "entresol-grid-tests.lock"), StandardOpenOption.CREATE,
                    StandardOpenOption.WRITE);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static boolean isFree(int offset) {
        try {
            new Ports(offset).check("127.0.0.1", "127.0.0.1");
            return true;
        } catch (GridException taken) {
            return false;
        }
    }
}
