package io.entresol.infinispan.recovery;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/** Small files whose changes survive power loss. */
public final class SyncedFile {
    private SyncedFile() {
    }

    /** Writes a file; whoever reads it meanwhile, or after a crash, finds the old or the new. */
    public static void replace(Path file, String text) throws IOException {
        Files.createDirectories(file.getParent());
        Path written = file.resolveSibling(file.getFileName() + ".new");
        Files.writeString(written, text, StandardCharsets.UTF_8, StandardOpenOption.CREATE,
                StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE,
                StandardOpenOption.SYNC);
        Files.move(written, file, StandardCopyOption.ATOMIC_MOVE);
        sync(file.getParent());
    }

    /** Removes a file if it is there. */
    static void remove(Path file) throws IOException {
        if (Files.deleteIfExists(file)) {
            sync(file.getParent());
        }
    }

    private static void sync(Path folder) throws IOException {
        try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
            channel.force(true);
        }
    }
}
