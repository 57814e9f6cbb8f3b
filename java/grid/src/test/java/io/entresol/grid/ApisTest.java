package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;

/** The programs of docs/guides/apis.md, in their order. */
class ApisTest {
    private static final Path HOME = Path.of(System.getProperty("entresol.grid.home"));
    private static final Pattern BLOCK =
            Pattern.compile("^```(\\w+)\n(.*?)^```", Pattern.DOTALL | Pattern.MULTILINE);
    private static final Pattern FILE = Pattern.compile("^<!-- (\\S+) -->\n");
    private static final Pattern CLASS =
            Pattern.compile("^class (\\w+)", Pattern.MULTILINE);
    /** Where Debian has the modules of its packages. */
    private static final String PYTHON = "/usr/bin/python3";
    private static final String MODULES = "/usr/share/nodejs";

    private TestGrid grid;

    /** A block of the page. */
    private record Block(String language, String text) {
    }

    @Test
    void theProgramsOfThePageRunAndPrintWhatItSays() throws Exception {
        grid = new TestGrid();
        grid.start().succeeded();
        try {
            playAll();
        } finally {
            grid.stop();
        }
        grid.remove();
    }

    private void playAll() throws Exception {
        List<Block> blocks = new ArrayList<>();
        String page = Files.readString(HOME.resolve("../../docs/guides/apis.md"));
        for (Matcher block = BLOCK.matcher(page); block.find();) {
            blocks.add(new Block(block.group(1), here(block.group(2))));
        }
        int compared = 0;
        String said = null;
        for (Block block : blocks) {
            if (block.language.equals("text")) {
                if (said != null) {
                    assertEquals(block.text.strip(), said.strip());
                    compared++;
                }
            } else {
                said = play(block);
            }
        }
        assertTrue(compared >= 5, compared + " programs were run");
    }

    /** The text with this test's ports and folders. */
    private String here(String text) {
        return text.replace("/var/lib/", grid.folder + "/")
                .replace("11222", "" + grid.ports().main())
                .replace("6379", "" + grid.ports().resp());
    }

    /** What the block prints; null if it does not run, or not on this machine. */
    private String play(Block block) throws Exception {
        switch (block.language) {
            case "xml":
                Matcher file = FILE.matcher(block.text);
                assertTrue(file.find(), block.text);
                Files.writeString(grid.folder.resolve(file.group(1)),
                        file.replaceFirst(""));
                return null;
            case "java":
                return java(block.text);
            case "sh":
                return run("sh", "-e", "-c", block.text);
            case "python":
                return runsOrSkips("python3-redis", block.text, PYTHON, "-c", "import redis")
                        ? run(PYTHON, "-c", block.text) : null;
            case "js":
                return runsOrSkips("node-redis", block.text, "node", "-e", "require('redis')")
                        ? run("node", "-e", block.text) : null;
            default:
                throw new AssertionError("nobody runs " + block.language);
        }
    }

    private String java(String source) throws Exception {
        Matcher name = CLASS.matcher(source);
        assertTrue(name.find(), source);
        Path file = grid.folder.resolve(name.group(1) + ".java");
        Files.writeString(file, source);
        String paths = classPath() + File.pathSeparator + grid.folder;
        // Only the one processor: others of the class path check their own projects' sources.
        ByteArrayOutputStream complained = new ByteArrayOutputStream();
        int status = ToolProvider.getSystemJavaCompiler().run(null, null, complained, "-d",
                grid.folder.toString(), "-cp", paths, "-processor",
                "org.infinispan.protostream.processor.ProtoSchemaAnnotationProcessor",
                file.toString());
        assertEquals(0, status, complained::toString);
        return run(System.getProperty("java.home") + "/bin/java", "-cp", paths, name.group(1));
    }

    private static String classPath() {
        return Stream.of("surefire.test.class.path", "java.class.path")
                .map(System::getProperty).filter(java.util.Objects::nonNull).findFirst()
                .orElseThrow();
    }

    /** Whether {@code probe} succeeds; says what is skipped if not. */
    private boolean runsOrSkips(String debian, String text, String... probe) throws Exception {
        try {
            if (inFolder(probe).status() == 0) {
                return true;
            }
        } catch (java.io.IOException absent) {
            // Told as any other failure.
        }
        System.out.println("skipped, as " + debian + " is not installed: "
                + text.lines().findFirst().orElse(""));
        return false;
    }

    private String run(String... command) throws Exception {
        return inFolder(command).succeeded().out();
    }

    private TestGrid.Ran inFolder(String... command) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(command).directory(grid.folder.toFile());
        builder.environment().put("NODE_PATH", MODULES);
        builder.environment().put("ENTRESOL_GRID_SERVER", grid.server());
        builder.environment().merge("PATH", HOME.resolve("bin").toString(),
                (path, own) -> own + ":" + path);
        return TestGrid.run(builder);
    }
}
