package io.entresol;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * Stores whose processes were killed. Their write buffers stay in shared memory, on purpose: the
 * next opening reads them. A test that deletes such a store is to remove them with it.
 */
public final class KilledStores {
    private static final Path BUFFERS = Path.of("/dev/shm");
    /** As docs/internals/data-file.md has it. */
    private static final long MAGIC =
            ByteBuffer.wrap("ENTRESOL".getBytes()).order(ByteOrder.LITTLE_ENDIAN).getLong();
    private static final int STORE_AT = 24;

    private KilledStores() {
    }

    /** Removes the write buffers of all stores in the folder, which nobody has open. */
    public static void removeBuffers(Path folder) throws IOException {
        if (!Files.isDirectory(folder)) {
            return;
        }
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                ByteBuffer start = start(file);
                if (start.limit() > STORE_AT + Long.BYTES && start.getLong(0) == MAGIC) {
                    for (String end : new String[] {"buffers", "new"}) {
                        Files.deleteIfExists(buffers(start.getLong(STORE_AT), end));
                    }
                }
            }
        }
    }

    /** Where the write buffers are of the store with that file, whether they are there or not. */
    public static Path buffers(Path file) throws IOException {
        return buffers(start(file).getLong(STORE_AT), "buffers");
    }

    private static Path buffers(long store, String end) {
        return BUFFERS.resolve(String.format("entresol-%016x.%s", store, end));
    }

    private static ByteBuffer start(Path file) throws IOException {
        try (InputStream from = Files.newInputStream(file)) {
            return ByteBuffer.wrap(from.readNBytes(STORE_AT + 2 * Long.BYTES))
                    .order(ByteOrder.LITTLE_ENDIAN);
        }
    }
}
