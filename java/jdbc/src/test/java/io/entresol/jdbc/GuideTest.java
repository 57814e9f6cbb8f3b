package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The examples of the guide. */
class GuideTest {
    @TempDir
    Path folder;

    @Test
    void statementsOfTheGuideRunOnItsContainer() throws Exception {
        String guide = Files.readString(Path.of("../../docs/guides/sql.md"));
        Path configuration = folder.resolve("grid.xml");
        Files.writeString(configuration, snippet(guide, "xml")
                .replace("/var/lib/infinispan", folder.resolve("data").toString()));
        String said = shell(snippet(guide, "sql"), "--config", configuration.toString());
        assertTrue(said.startsWith("2 rows changed\n"), said);
        assertTrue(said.contains("Ann   36"), said);
        assertTrue(said.contains("Bonn          1       41"), said);
        assertTrue(said.contains("entries by index"), said);
        assertTrue(said.endsWith("1 row changed\n"), said);
        // The container stopped with its connection; its entries are there for the next one.
        assertEquals("{\"_key\":\"a\",\"age\":37}\n", shell("select _key, age from people;",
                "--json", "--config", configuration.toString()));
    }

    private static String snippet(String guide, String language) {
        int start = guide.indexOf("```" + language + "\n") + language.length() + 4;
        return guide.substring(start, guide.indexOf("```", start));
    }

    private static String shell(String input, String... arguments) throws Exception {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream stream = new PrintStream(said, true, StandardCharsets.UTF_8);
        int status = Shell.run(arguments, new StringReader(input), stream, stream);
        String text = said.toString(StandardCharsets.UTF_8);
        assertEquals(0, status, text);
        return text;
    }
}
