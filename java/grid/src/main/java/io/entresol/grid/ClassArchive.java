package io.entresol.grid;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * An archive of a node's classes that Java maps, instead of reading and verifying each class: a
 * start then takes half of the processor's time. It is a file in the user's cache, one for each
 * Java and class path. A node that started without an archive lists its loaded classes. Once it
 * serves, a process beside it makes the archive from that list, at the lowest priority.
 *
 * <p>Nothing depends on the archive. It appears as a whole. The start of a node has Java verify it,
 * and removes a damaged archive. If there can be none, nodes start from their jars, without a
 * message.
 */
public final class ClassArchive {
    /** In a node: the list of the classes that it loaded, of which an archive is to be made. */
    private static final String LISTED = "entresol.classes.listed";
    private static final String ARCHIVE = ".jsa";
    private static final String UNFINISHED = ".making";
    /** Java could not make it: the next try would fail as this one did, after as much work. */
    private static final String REFUSED = ".refused";
    /** With less room a failure tells nothing of the next try. */
    private static final long ROOM_BYTES = 512L << 20;
    /** Statuses from here on are those of processes that somebody killed. */
    private static final int KILLED = 128;
    /** Each takes 100 MB; those of former builds and Javas are nobody's any more. */
    private static final int KEPT = 3;
    /** Heaps from here on have other references, and with them other archives. */
    private static final long LARGE_HEAP = 31L << 30;
    /** What Java warns of goes beside the line that a node says; of archives, to nobody. */
    private static final List<String> QUIET =
            List.of("-Xlog:all=off:stdout", "-Xlog:all=warning,cds*=off:stderr");
    /** The first process to end where memory is short, and the last to get a processor. */
    private static final String BEHIND =
            "(echo 1000 > /proc/self/oom_score_adj) 2>/dev/null; exec nice -n 19 \"$@\"";

    private final Path folder;
    private final String classPath;
    private final Path file;
    private final Path refused;
    private Boolean usable;

    /** What is, or will be, in that folder for that class path. */
    ClassArchive(Path folder, String classPath) {
        this.folder = folder;
        this.classPath = classPath;
        file = folder.resolve(key(classPath) + ARCHIVE);
        refused = folder.resolve(file.getFileName() + REFUSED);
    }

    /** That of this program; empty where there can be none. */
    static Optional<ClassArchive> ofThis() {
        String classPath = System.getProperty("java.class.path");
        return cache(System.getenv("XDG_CACHE_HOME"), System.getProperty("user.home"))
                .filter(folder -> isOfJars(classPath))
                .map(folder -> new ClassArchive(folder, classPath));
    }

    /** Where a user's archives are: by the rule of freedesktop.org, absolute or not at all. */
    static Optional<Path> cache(String named, String home) {
        Path cache = named != null && named.startsWith("/") ? Path.of(named)
                : home != null && home.startsWith("/") ? Path.of(home, ".cache") : null;
        return Optional.ofNullable(cache).map(path -> path.resolve("entresol-grid"));
    }

    /** Java archives classes of jars only. */
    static boolean isOfJars(String classPath) {
        return Stream.of(classPath.split(File.pathSeparator))
                .allMatch(path -> path.endsWith(".jar") && Files.isRegularFile(Path.of(path)));
    }

    /** What a node's Java is started with, archive or not. */
    static List<String> flags(Optional<ClassArchive> archive, NodePlan plan) {
        List<String> flags = new ArrayList<>(QUIET);
        if (plan.heapBytes() < LARGE_HEAP) {
            Path list = plan.folder().log().resolve("classes");
            archive.ifPresent(one -> flags.addAll(one.flags(list)));
        }
        return flags;
    }

    /** Uses the archive, or has what will be in it listed in a file. */
    List<String> flags(Path list) {
        if (usable == null) {
            usable = verify();
        }
        return usable ? List.of("-XX:SharedArchiveFile=" + file)
                : Files.exists(refused) || !canMake() ? List.of()
                : List.of("-XX:DumpLoadedClassList=" + list, "-D" + LISTED + "=" + list);
    }

    /** In a node that serves: makes the archive if it started without; the process that does. */
    static Optional<Process> makeBehind() {
        String list = System.getProperty(LISTED);
        return list == null ? Optional.empty()
                : ofThis().flatMap(archive -> archive.makeBehind(Path.of(list)));
    }

    /** It outlives the node: one that runs for seconds leaves an archive to the next. */
    Optional<Process> makeBehind(Path list) {
        try {
            return Optional.of(quiet(List.of("/bin/sh", "-c", BEHIND, "sh", java(), "-Xmx32m",
                    "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classPath,
                    ClassArchive.class.getName(), folder.toString(), list.toString())).start());
        } catch (IOException nobodyToMakeIt) {
            return Optional.empty();
        }
    }

    /** Makes the archive of this program's class path in a folder, of a list of classes. */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        new ClassArchive(Path.of(arguments[0]), System.getProperty("java.class.path"))
                .make(Path.of(arguments[1]));
    }

    /** Makes it unless somebody else does or did; whether it is there now. */
    boolean make(Path list) throws IOException, InterruptedException {
        if (!canMake()) {
            return false;
        }
        try (FileChannel channel = FileChannel.open(folder.resolve("lock"),
                StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                FileLock lock = channel.tryLock()) {
            if (lock == null) {
                return false;
            }
            // Those who were killed left them.
            remove(files(UNFINISHED));
            if (!verify() && !Files.exists(refused)) {
                makeAlone(list);
            }
            return Files.exists(file);
        } finally {
            Files.deleteIfExists(list);
        }
    }

    private void makeAlone(Path list) throws IOException, InterruptedException {
        Path classes = folder.resolve(file.getFileName() + "-classes" + UNFINISHED);
        Path made = folder.resolve(file.getFileName() + UNFINISHED);
        try {
            // The node goes on writing: the last line may be a part of one.
            String listed = Files.readString(list, StandardCharsets.UTF_8);
            Files.writeString(classes, listed.substring(0, listed.lastIndexOf('\n') + 1));
            List<String> dump = command("-Xshare:dump", "-Xlog:disable",
                    "-XX:SharedClassListFile=" + classes, "-XX:SharedArchiveFile=" + made);
            int status = quiet(dump).start().waitFor();
            if (status == 0 && isIntact(made)) {
                sync(made);
                Files.move(made, file, StandardCopyOption.ATOMIC_MOVE);
                sync(folder);
                removeFormer(ARCHIVE);
            } else if (status < KILLED && folder.toFile().getUsableSpace() >= ROOM_BYTES) {
                Files.write(refused, new byte[0]);
                removeFormer(REFUSED);
            }
        } finally {
            Files.deleteIfExists(classes);
            Files.deleteIfExists(made);
        }
    }

    /** Whether there is an intact archive; one that is not is removed, to be made anew. */
    private boolean verify() {
        try {
            if (!Files.isRegularFile(file) || !isOurs()) {
                return false;
            }
            if (isIntact(file)) {
                Files.setLastModifiedTime(file, FileTime.from(Instant.now()));
                return true;
            }
            Files.deleteIfExists(file);
        } catch (IOException unusable) {
            // As good as none.
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        return false;
    }

    /** Java's own word, checksums and class path among it: without the archive it would not run. */
    private boolean isIntact(Path archive) throws IOException, InterruptedException {
        return quiet(command("-Xshare:on", "-XX:+VerifySharedSpaces", "-Xlog:disable",
                "-XX:SharedArchiveFile=" + archive, "-version")).start().waitFor() == 0;
    }

    /** Whether there is a folder that nobody else writes into, made if need be. */
    private boolean canMake() {
        try {
            Files.createDirectories(folder, PosixFilePermissions.asFileAttribute(
                    PosixFilePermissions.fromString("rwx------")));
            return isOurs() && Files.isWritable(folder);
        } catch (IOException | UnsupportedOperationException never) {
            return false;
        }
    }

    /** Classes of an archive are run: it must be nobody else's. */
    private boolean isOurs() throws IOException {
        Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(folder);
        return Files.getOwner(folder).getName().equals(System.getProperty("user.name"))
                && !permissions.contains(PosixFilePermission.GROUP_WRITE)
                && !permissions.contains(PosixFilePermission.OTHERS_WRITE);
    }

    /** Those of a kind in the folder, the last used first. */
    private List<Path> files(String kind) throws IOException {
        try (Stream<Path> all = Files.list(folder)) {
            return all.filter(path -> path.toString().endsWith(kind))
                    .sorted(Comparator.comparing(ClassArchive::time).reversed()).toList();
        }
    }

    private static FileTime time(Path path) {
        try {
            return Files.getLastModifiedTime(path);
        } catch (IOException gone) {
            return FileTime.fromMillis(0);
        }
    }

    private void removeFormer(String kind) throws IOException {
        List<Path> all = files(kind);
        remove(all.subList(Math.min(KEPT, all.size()), all.size()));
    }

    private static void remove(List<Path> files) throws IOException {
        for (Path each : files) {
            Files.deleteIfExists(each);
        }
    }

    private static void sync(Path path) throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            channel.force(true);
        }
    }

    /** Java with the modules of a node: archives are made for them. */
    private List<String> command(String... flags) {
        List<String> command = new ArrayList<>(List.of(java(), "-Xmx512m",
                "-XX:ErrorFile=/dev/null", "-XX:-CreateCoredumpOnCrash", "-cp", classPath));
        command.addAll(NodeProcess.modules());
        command.addAll(List.of(flags));
        return command;
    }

    private static ProcessBuilder quiet(List<String> command) {
        return new ProcessBuilder(command).redirectInput(new File("/dev/null"))
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD);
    }

    private static String java() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }

    /** Names the Java, and the jars as Java knows them again: by place, length and time. */
    private static String key(String classPath) {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            List<String> parts = new ArrayList<>(List.of(System.getProperty("java.home"),
                    System.getProperty("java.vm.name"), System.getProperty("java.vm.version"),
                    String.join(" ", NodeProcess.modules())));
            for (String path : classPath.split(File.pathSeparator)) {
                Path jar = Path.of(path);
                parts.add(path + " " + Files.size(jar) + " " + Files.getLastModifiedTime(jar));
            }
            byte[] hash = digest.digest(String.join("\n", parts).getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(hash, 0, 10);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        } catch (NoSuchAlgorithmException never) {
            throw new IllegalStateException("each Java has SHA-256", never);
        }
    }
}
