package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The commands of docs/guides/grid.md, in their order. */
class GuideTest {
    private static final Path HOME = Path.of(System.getProperty("entresol.grid.home"));
    private static final Pattern BLOCK =
            Pattern.compile("^```sh\n(.*?)^```", Pattern.DOTALL | Pattern.MULTILINE);

    @Test
    void theCommandsOfTheGuideDoWhatItSays() throws Exception {
        TestGrid grid = new TestGrid();
        String guide = Files.readString(HOME.resolve("../../docs/guides/grid.md"));
        StringBuilder script = new StringBuilder("set -e\n");
        for (Matcher block = BLOCK.matcher(guide); block.find();) {
            script.append(block.group(1));
        }
        String commands = script.toString()
                .replace("/var/lib/grid", grid.folder + "/guide")
                .replace("--detach", "--detach --endpoint-template ram --port-offset "
                        + grid.offset)
                .replace("127.0.0.1:11222", grid.server());
        ProcessBuilder builder = new ProcessBuilder("sh", "-c", commands);
        builder.environment().put("ENTRESOL_GRID_SERVER", grid.server());
        builder.environment().merge("PATH", HOME.resolve("bin").toString(),
                (path, own) -> own + ":" + path);
        TestGrid.Ran ran = TestGrid.run(builder);
        if (ran.status() != 0) {
            TestGrid.program("stop", "--dir", grid.folder + "/guide");
        }
        assertEquals(0, ran.status(), ran.out() + ran.err());
        int start = guide.indexOf("```text\nname ") + "```text\n".length();
        String table = guide.substring(start, guide.indexOf("```", start));
        assertTrue(ran.out().contains(table), ran.out());
        assertTrue(ran.out().replaceAll(" +", " ").contains("orders total\n------ -----\n2 165.5\n"),
                ran.out());
        assertTrue(ran.out().contains("undeployed prices"), ran.out());
        assertTrue(ran.out().endsWith("stopped: 1\n"), ran.out());
        grid.remove();
    }
}
