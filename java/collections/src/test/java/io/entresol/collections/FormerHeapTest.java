package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Heaps know classes by their names: these stay, whatever becomes of those behind them. */
final class FormerHeapTest {
    @TempDir
    Path folder;

    @Test
    void aHeapOfAnEarlierBuildHasAllThatWasPutIntoIt() throws IOException {
        Path file = folder.resolve("former.heap");
        try (InputStream letters = FormerHeapTest.class.getResourceAsStream("/former-heap.txt")) {
            FormerHeap.unpack(letters, file);
        }
        try (ObjectHeap former = ObjectHeap.open(file.toString());
                ObjectHeap now = Heaps.create(folder)) {
            FormerHeap.fill(now);
            assertEquals(now.directory().names(), former.directory().names());
            for (String name : now.directory().names()) {
                assertEquals(FormerHeap.shown(now.directory().get(name, Object.class)),
                        FormerHeap.shown(former.directory().get(name, Object.class)), name);
            }
            assertEquals(0, former.collect().freedBlocks());
        }
    }
}
