package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A node's file of deployed caches. */
class SavedCachesTest {
    private static final Configuration PLAIN = new ConfigurationBuilder().build();

    @TempDir
    Path root;

    /** The cache was gone from memory, so that nobody wrote the file, and a start brought it back. */
    @Test
    void aCacheWhoseRemovalCouldNotBeWrittenIsRemovedByTheNextTry() throws Exception {
        Path folder = root.resolve("data");
        Path file = folder.resolve("caches.xml");
        SavedCaches saved = new SavedCaches(file, Map.of());
        saved.put("prices", PLAIN);
        saved.put("orders", PLAIN);
        // A folder of that name is in the way of what is written first.
        Path hindered = Files.createDirectory(folder.resolve("caches.xml.new"));
        assertThrows(UncheckedIOException.class, () -> saved.remove("prices"));
        assertTrue(Files.readString(file).contains("prices"));
        assertTrue(saved.has("prices"));
        Files.delete(hindered);
        saved.remove("prices");
        assertFalse(saved.has("prices"));
        assertFalse(Files.readString(file).contains("prices"));
        assertTrue(Files.readString(file).contains("orders"));
    }

    @Test
    void aCacheThatCouldNotBeSavedIsLeftOutByItsRemoval() throws Exception {
        Path file = root.resolve("data/caches.xml");
        SavedCaches saved = new SavedCaches(file, Map.of());
        saved.put("orders", PLAIN);
        Path hindered = Files.createDirectory(root.resolve("data/caches.xml.new"));
        assertThrows(UncheckedIOException.class, () -> saved.put("prices", PLAIN));
        assertFalse(saved.has("prices"));
        Files.delete(hindered);
        // What a failed write left in the file is not known.
        Files.writeString(file, Files.readString(file).replace("orders", "prices"));
        saved.remove("prices");
        assertFalse(Files.readString(file).contains("prices"));
        assertTrue(Files.readString(file).contains("orders"));
    }
}
