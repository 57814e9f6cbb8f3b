package io.entresol.grid;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.globalstate.ScopedPersistentState;

/**
 * The folder of a node: the console's files, configuration, data, diagnostics, and whether the node
 * runs.
 *
 * @param root the folder
 */
record NodeFolder(Path root) {
    private static final String PLAN = "node.properties";
    private static final String AT_ONCE = "node.leaves";
    /** A process that was killed has given its files up by then. */
    private static final long ENDING_SECONDS = 3;
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    NodeFolder {
        root = root.toAbsolutePath().normalize();
    }

    Path server() {
        return root.resolve("server");
    }

    Path configuration() {
        return server().resolve("conf");
    }

    Path log() {
        return server().resolve("log");
    }

    /** Makes all that a server expects to find. */
    void prepare(NodePlan plan) {
        if (root.toString().contains(",") || root.toString().contains("{n}")) {
            throw new GridException("the folder is " + root + ", and names of stores have ','"
                    + " between devices and '{n}' for a number; name a folder without them: --dir");
        }
        try {
            for (String folder : new String[] {"conf", "data", "lib", "log"}) {
                Files.createDirectories(server().resolve(folder));
            }
            copy(plan.site() == null ? "stack.xml" : "stack-of-sites.xml", "stack.xml");
            Files.writeString(configuration().resolve("node.xml"),
                    ServerXml.of(text("node.xml"), plan));
            for (NodeTls each : NodeTls.values()) {
                each.write(plan.tls().get(each), configuration());
            }
            copy("log4j2.xml", "log4j2.xml");
            Files.writeString(configuration().resolve("caches.xml"), Endpoints.xml(plan));
            copyUsers(plan);
            try (OutputStream to = Files.newOutputStream(configuration().resolve(PLAN))) {
                plan.properties().store(to, null);
            }
            unpackConsole();
        } catch (IOException failure) {
            throw new GridException("cannot prepare the folder " + root + ": " + failure
                    + "; name a folder that can be written: --dir", failure);
        }
    }

    Properties plan() {
        Properties plan = new Properties();
        try (Reader from = Files.newBufferedReader(configuration().resolve(PLAN))) {
            plan.load(from);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
        return plan;
    }

    /** Says that the node runs, and where; the file is there as a whole or not at all. */
    void writeRunning(Json facts) {
        try {
            Path next = root.resolve("node.json.next");
            Files.writeString(next, facts.toString());
            Files.move(next, root.resolve("node.json"), StandardCopyOption.REPLACE_EXISTING,
                    StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** What the running node said of itself; empty if there was none. */
    Optional<Json> readRunning() {
        Path file = root.resolve("node.json");
        try {
            return Files.exists(file)
                    ? Optional.of(Json.read(Files.readString(file))) : Optional.empty();
        } catch (IOException | Json.MalformedJsonException failure) {
            throw new GridException("cannot read " + file + ": " + failure.getMessage()
                    + "; remove it if no node runs in " + root, failure);
        }
    }

    void writePid(long pid) {
        try {
            Files.createDirectories(root);
            // Of one that was killed.
            Files.deleteIfExists(root.resolve(AT_ONCE));
            Files.writeString(root.resolve("node.pid"), pid + "\n");
        } catch (IOException failure) {
            throw new GridException("cannot write into " + root + ": " + failure, failure);
        }
    }

    /** The process of the node that runs here. */
    Optional<ProcessHandle> process() {
        Path file = root.resolve("node.pid");
        if (!Files.exists(file)) {
            return Optional.empty();
        }
        try {
            long pid = Long.parseLong(Files.readString(file).trim());
            // Another program may have the number by now.
            return ProcessHandle.of(pid).filter(ProcessHandle::isAlive).filter(this::isNode);
        } catch (IOException | NumberFormatException failure) {
            throw new GridException("cannot read " + file + ": " + failure.getMessage()
                    + "; remove it if no node runs in " + root, failure);
        }
    }

    /**
     * Whether a node has the folder that is none of the processes here, as in another container.
     * Infinispan would call what it has locked a remainder of one that was killed. Such a one may
     * take a moment to be gone.
     */
    boolean isElsewhere() {
        Path locked = server().resolve("data")
                .resolve(ScopedPersistentState.GLOBAL_SCOPE + ".lck");
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(ENDING_SECONDS);
        while (Files.exists(locked) && isLocked(locked)) {
            if (System.nanoTime() > deadline) {
                return true;
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
        return false;
    }

    private static boolean isLocked(Path file) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE);
                FileLock lock = channel.tryLock()) {
            return lock == null;
        } catch (NoSuchFileException gone) {
            return false;
        } catch (OverlappingFileLockException own) {
            return true;
        } catch (IOException failure) {
            throw new GridException("cannot open " + file + ": " + failure + "; name a folder"
                    + " that can be written: --dir", failure);
        }
    }

    /**
     * Whether a process has ended. Java calls it alive until its parent has taken note, which is
     * the first process of a container once the launcher is gone: some take seconds, some never do.
     */
    static boolean hasEnded(ProcessHandle process) {
        Path place = Path.of("/proc/" + process.pid());
        try (Stream<Path> threads = Files.list(place.resolve("task"))) {
            String facts = Files.readString(place.resolve("stat"));
            // The first of its threads is the last to go, and the name before may be anything.
            return facts.startsWith("Z", facts.lastIndexOf(')') + 2) && threads.count() == 1
                    || !process.isAlive();
        } catch (IOException | UncheckedIOException gone) {
            return !process.isAlive();
        }
    }

    /** Has the node that was told to stop leave at once, whatever is lost. */
    void leaveAtOnce() {
        try {
            Files.writeString(root.resolve(AT_ONCE), "");
        } catch (IOException failure) {
            throw new GridException("cannot write into " + root + ": " + failure, failure);
        }
    }

    boolean isToLeave() {
        return Files.exists(root.resolve(AT_ONCE));
    }

    void removePid() {
        try {
            Files.deleteIfExists(root.resolve(AT_ONCE));
            Files.deleteIfExists(root.resolve("node.json"));
            Files.deleteIfExists(root.resolve("node.pid"));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private boolean isNode(ProcessHandle process) {
        try {
            List<String> line = List.of(Files.readString(
                    Path.of("/proc/" + process.pid() + "/cmdline")).split("\0"));
            return line.contains(Node.class.getName()) && line.contains(root.toString());
        } catch (IOException gone) {
            return false;
        }
    }

    private void copy(String resource, String file) throws IOException {
        try (InputStream from = NodeFolder.class.getResourceAsStream(resource)) {
            Files.copy(from, configuration().resolve(file), StandardCopyOption.REPLACE_EXISTING);
        }
    }

    private static String text(String resource) throws IOException {
        try (InputStream from = NodeFolder.class.getResourceAsStream(resource)) {
            return new String(from.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private void copyUsers(NodePlan plan) throws IOException {
        Map<String, GridUser> users = plan.users() == null ? Map.of()
                : UserLines.read(plan.users());
        Path hashes = configuration().resolve("users.properties");
        Files.deleteIfExists(hashes);
        Files.createFile(hashes, PosixFilePermissions.asFileAttribute(
                PosixFilePermissions.fromString("rw-------")));
        Files.writeString(hashes, UserLines.hashes(users));
        try (OutputStream to = Files.newOutputStream(
                configuration().resolve("groups.properties"))) {
            UserLines.roles(users).store(to, null);
        }
    }

    private void unpackConsole() throws IOException {
        Path target = root.resolve("static/console");
        Path jar = consoleJar();
        Path marker = target.resolve("entresol-unpacked");
        String version = jar.getFileName().toString();
        if (Files.exists(marker) && Files.readString(marker).equals(version)) {
            return;
        }
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            for (Enumeration<? extends ZipEntry> all = zip.entries(); all.hasMoreElements();) {
                ZipEntry entry = all.nextElement();
                Path file = target.resolve(entry.getName()).normalize();
                if (entry.isDirectory() || !file.startsWith(target)) {
                    continue;
                }
                Files.createDirectories(file.getParent());
                Files.copy(zip.getInputStream(entry), file, StandardCopyOption.REPLACE_EXISTING);
            }
        }
        Files.writeString(marker, version);
    }

    private static Path consoleJar() {
        for (String path : System.getProperty("java.class.path").split(":")) {
            if (path.contains("infinispan-console")) {
                return Path.of(path);
            }
        }
        throw new GridException("the jar infinispan-console is not on the class path; build the"
                + " grid anew");
    }
}
