package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The archive that nodes map from a former start: it is whole and intact, or nodes start without
 * it.
 */
class ClassArchiveTest {
    private static final Path HOME = Path.of(System.getProperty("entresol.grid.home"));
    private static final String ASKED = "picocli/CommandLine";
    /** One that there is not, and a line that the node is still writing. */
    private static final String LIST = "java/lang/Object id: 0\npicocli/CommandLine\n"
            + "io/entresol/grid/Gone\npicocli/Comm";

    @TempDir
    Path root;

    private Path folder;
    private Path list;
    private String classPath;

    @BeforeEach
    void prepare() throws IOException {
        folder = root.resolve("cache/entresol-grid");
        list = Files.writeString(root.resolve("classes"), LIST);
        classPath = ownJar() + ":" + Files.readString(HOME.resolve("target/classpath"));
    }

    private static Path ownJar() throws IOException {
        try (Stream<Path> files = Files.list(HOME.resolve("target"))) {
            return files.filter(path -> path.getFileName().toString()
                    .matches("entresol-grid-[0-9.]*\\.jar")).findFirst().orElseThrow();
        }
    }

    /** As another launcher finds it. */
    private ClassArchive archive() {
        return new ClassArchive(folder, classPath);
    }

    private List<Path> files() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(path -> !path.endsWith("lock")).toList();
        }
    }

    private boolean asksForAList() {
        return archive().flags(list).get(0).startsWith("-XX:DumpLoadedClassList=");
    }

    private Path made() throws Exception {
        assertTrue(archive().make(list));
        assertEquals(1, files().size(), "something is left: " + files());
        return files().get(0);
    }

    /** What Java says when it loads classes of the class path with these flags. */
    private String loading(List<String> flags) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        command.addAll(NodeProcess.modules());
        command.addAll(flags);
        command.addAll(List.of("-Xlog:class+load:stdout", "-cp", classPath,
                Launcher.class.getName(), "--version"));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), said);
        return said;
    }

    private static boolean maps(String said) {
        return said.lines().anyMatch(line -> line.contains(ASKED.replace('/', '.') + " ")
                && line.contains("shared objects file"));
    }

    @Test
    void aNodeMapsTheClassesThatAnEarlierOneListed() throws Exception {
        assertTrue(asksForAList());
        assertFalse(maps(loading(List.of())));
        Path file = made();
        assertFalse(Files.exists(list), "the list is left");
        List<String> flags = archive().flags(list);
        assertEquals(List.of("-XX:SharedArchiveFile=" + file), flags);
        assertTrue(maps(loading(flags)));
    }

    /** The way that a node takes, and two others at once: one process makes it. */
    @Test
    void nodesThatStartTogetherMakeOneArchive() throws Exception {
        List<Process> making = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            Path own = Files.writeString(root.resolve("classes-" + number), LIST);
            making.add(archive().makeBehind(own).orElseThrow());
        }
        for (Process process : making) {
            assertEquals(0, process.waitFor());
        }
        assertEquals(1, files().size(), "more than an archive: " + files());
        assertFalse(asksForAList());
    }

    @Test
    void aDamagedArchiveIsRemovedAndMadeAnew() throws Exception {
        Path file = made();
        file.toFile().setWritable(true);
        try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
            bytes.seek(bytes.length() / 2);
            int there = bytes.read();
            bytes.seek(bytes.length() / 2);
            bytes.write(~there);
        }
        assertTrue(asksForAList());
        assertFalse(Files.exists(file));
        Files.writeString(list, LIST);
        assertEquals(file, made());
        try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
            bytes.setLength(bytes.length() / 3);
        }
        assertTrue(asksForAList());
    }

    /** Each start listed its classes and had the archive tried again, in vain. */
    @Test
    void anArchiveThatJavaCannotMakeIsTriedOnceForEachBuild() throws Exception {
        Files.writeString(list, "java/lang/Object id: none\n");
        assertFalse(archive().make(list));
        assertEquals(List.of(), archive().flags(list));
        assertEquals(1, files().size(), "what is left: " + files());
        Path refused = files().get(0);
        // One that could be made is not, either, until somebody removes the note.
        Files.writeString(list, LIST);
        assertFalse(archive().make(list));
        assertFalse(Files.exists(list), "the list is left");
        String former = classPath;
        classPath = Files.copy(ownJar(), root.resolve("own.jar"))
                + former.substring(former.indexOf(':'));
        assertTrue(asksForAList());
        classPath = former;
        Files.delete(refused);
        Files.writeString(list, LIST);
        made();
    }

    /** The makers were killed: the next one is not kept from it, and removes what they left. */
    @Test
    void whatAKilledMakerLeftHindersNobody() throws Exception {
        Files.createDirectories(folder);
        Files.writeString(folder.resolve("lock"), "");
        Files.writeString(folder.resolve("0123.jsa.making"), "half of it");
        made();
    }

    @Test
    void whereThereCanBeNoArchiveNodesStartWithout() throws Exception {
        Path taken = Files.writeString(root.resolve("file"), "");
        ClassArchive nowhere = new ClassArchive(taken.resolve("entresol-grid"), classPath);
        assertEquals(List.of(), nowhere.flags(list));
        assertFalse(nowhere.make(list));
        ClassArchive unwritable = new ClassArchive(Path.of("/proc/self"), classPath);
        assertEquals(List.of(), unwritable.flags(list));
        assertEquals(Optional.empty(), ClassArchive.cache(null, "?"));
        assertEquals(Optional.of(Path.of("/users/ann/.cache/entresol-grid")),
                ClassArchive.cache("relative", "/users/ann"));
        assertFalse(ClassArchive.isOfJars(classPath + ":" + root));
        assertTrue(ClassArchive.isOfJars(classPath));
    }

    /** Whoever writes there decides what nodes run. */
    @Test
    void aFolderThatOthersWriteIntoIsNotUsed() throws Exception {
        made();
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertEquals(List.of(), archive().flags(list));
    }

    @Test
    void anotherBuildHasAnotherArchiveAndThoseOfFormerBuildsGo() throws Exception {
        Path copy = Files.copy(ownJar(), root.resolve("own.jar"));
        String others = classPath.substring(classPath.indexOf(':'));
        for (int build = 0; build < 5; build++) {
            Files.setLastModifiedTime(copy, FileTime.fromMillis(1_700_000_000_000L + build));
            classPath = copy + others;
            assertTrue(asksForAList());
            Files.writeString(list, LIST);
            assertTrue(archive().make(list));
        }
        assertFalse(asksForAList());
        assertEquals(3, files().size());
    }

    private NodePlan plan(String heap) {
        return new NodePlan("node", new NodeFolder(root.resolve("node")), new Ports(0), "127.0.0.1",
                "127.0.0.1", "127.0.0.1[7800]", "grid", null, null, heap, null,
                Map.of(), null, false);
    }

    /** Java says it on the standard output, where launchers read what the node says. */
    @Test
    void anArchiveThatDoesNotFitIsNothingThatJavaTellsOf() throws Exception {
        Path file = made();
        NodePlan plan = plan("512m");
        List<String> flags = new ArrayList<>(ClassArchive.flags(Optional.of(archive()), plan));
        assertTrue(flags.contains("-XX:SharedArchiveFile=" + file));
        Files.writeString(file, "no archive");
        Process process = new ProcessBuilder(Stream.of(
                List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()), flags,
                List.of("-cp", classPath, Launcher.class.getName(), "--version"))
                .flatMap(List::stream).toList()).redirectErrorStream(true).start();
        assertEquals("entresol-grid 0.1.0\n",
                new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
        NodePlan large = plan("31g");
        assertFalse(ClassArchive.flags(Optional.of(archive()), large).stream()
                .anyMatch(flag -> flag.contains("SharedArchive")));
    }
}
