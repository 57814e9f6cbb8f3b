package io.entresol;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What README.md quotes. */
class EmbedTest {
    @TempDir
    Path folder;

    // ANCHOR: embed
    static String greet(Path file) {
        StoreOptions options = StoreOptions.on(file)
                .capacity(256L << 20)
                .memory(64L << 20) // one cap for index, write buffers and cache
                .durability(Durability.PROCESS); // survives kill -9
        try (Store store = Store.open(options)) {
            byte[] key = "greeting".getBytes(UTF_8);
            store.put(key, "hello from flash".getBytes(UTF_8));
            Optional<Long> refused = store.put(key, "again".getBytes(UTF_8),
                    PutOptions.DEFAULT.ifAbsent());
            assert refused.isEmpty();
            return new String(store.get(key), UTF_8);
        }
    }
    // ANCHOR_END: embed

    @Test
    void anEntryIsFoundAgainAfterItWasPut() {
        assertEquals("hello from flash", greet(folder.resolve("data")));
    }
}
