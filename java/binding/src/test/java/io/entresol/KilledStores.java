package io.entresol;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * Stores whose processes were killed. Their write buffers stay in shared memory, on purpose: the
 * next opening reads them. A test that deletes such a store must remove them, too.
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
                    for (Path buffers : named(start.getLong(STORE_AT))) {
                        Files.deleteIfExists(buffers);
                    }
                }
            }
        }
    }

    /** Where the write buffers are of the store with that file, or would be if there were any. */
    public static Path buffers(Path file) throws IOException {
        long store = start(file).getLong(STORE_AT);
        String none = String.format("entresol-%016x.buffers", store);
        return named(store).stream().findFirst().orElse(BUFFERS.resolve(none));
    }

    /** Each opening of a store names its own; a copy of the store has buffers of that name, too. */
    private static List<Path> named(long store) throws IOException {
        String beginning = String.format("entresol-%016x", store);
        try (Stream<Path> files = Files.list(BUFFERS)) {
            return files.filter(file -> file.getFileName().toString().startsWith(beginning))
                    .toList();
        }
    }

    private static ByteBuffer start(Path file) throws IOException {
        try (InputStream from = Files.newInputStream(file)) {
            return ByteBuffer.wrap(from.readNBytes(STORE_AT + 2 * Long.BYTES))
                    .order(ByteOrder.LITTLE_ENDIAN);
        }
    }
}
