package io.entresol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StoreConsoleTest {
    private static final long MIB = 1 << 20;
    private static final Pattern GROUP = Pattern.compile("\\[(\\d+),");

    @TempDir
    Path folder;

    @Test
    void thePageHasTheFiguresOfTheStoreAndAMapOfAllItsSegments() {
        StoreConsole console = new StoreConsole("Stores of <n0>");
        try (Store store = Store.open(StoreOptions.on(folder.resolve("data"))
                .capacity(64 * MIB).memory(64 * MIB))) {
            store.put(new byte[] {1}, new byte[1000]);
            String segments = store.segments(480).orElseThrow();
            long all = GROUP.matcher(segments).results()
                    .mapToLong(group -> Long.parseLong(group.group(1))).sum();
            assertEquals(store.statistics().figure("segments"), all);
            String figures = "\"stores\":[{\"name\":\"a\",\"store\":" + store.statistics().json();
            console.take("{" + figures + "}]}");
            String look = "{\"node\":\"n0\"," + figures + ",\"segments\":" + segments + "}]}";
            String page = console.show(StoreConsole.Part.PAGE, look);
            assertTrue(page.contains("<title>Stores of &lt;n0&gt;</title>"), page);
            assertTrue(page.contains("<data data-stat=\"/store/entries\" value=\"1\">"), page);
            assertFalse(page.contains("no map for now"), page);
            String now = console.show(StoreConsole.Part.NOW, look);
            assertFalse(now.contains("<title>Stores"), now);
            assertTrue(now.contains("Segments on flash"), now);
        }
        assertTrue(console.style().contains("color-scheme"));
        assertTrue(console.script().contains("/console/now"));
        StoreException wrong = assertThrows(StoreException.class, () -> console.take("{"));
        assertEquals(StoreException.Kind.INVALID, wrong.kind());
        assertTrue(wrong.getMessage().contains("figures as a JSON object"), wrong.getMessage());
    }
}
