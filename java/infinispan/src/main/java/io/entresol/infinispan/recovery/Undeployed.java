package io.entresol.infinispan.recovery;

import io.entresol.infinispan.Privileged;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.manager.EmbeddedCacheManager;

/**
 * The lineages of recovering caches that were undeployed, as this node knows them: a file in the
 * global state. A node that was away asks for its own lineages, and so does not wait for nodes that
 * never come. A name is not enough, because a new cache may have it.
 */
public final class Undeployed {
    private static final String NAME = "entresol.undeployed";
    /** Nodes that were away for longer than so many lineages wait for whom they know. */
    private static final int LIMIT = 10_000;
    /** That of lineages that were drawn; those of shutdowns may come again. */
    private static final int DRAWN = 4;

    /** Null where a node has no folder that lasts. */
    private final Path file;

    Undeployed(Path file) {
        this.file = file;
    }

    /** What a node knows. */
    public static Undeployed of(EmbeddedCacheManager manager) {
        GlobalConfiguration global = Privileged.getCacheManagerConfiguration(manager);
        return new Undeployed(global.globalState().enabled()
                ? Path.of(global.globalState().persistentLocation(), NAME) : null);
    }

    /** Notes the lineage of a cache that is about to be undeployed, if it recovers. */
    public static void note(EmbeddedCacheManager manager, String cache) {
        Optional<UUID> lineage = Recovery.lineage(manager, cache);
        if (lineage.isPresent() && lineage.get().version() == DRAWN) {
            of(manager).add(lineage.get());
        }
    }

    /** Notes one more, so that it survives power loss. */
    void add(UUID lineage) {
        synchronized (Undeployed.class) {
            List<String> lines = new ArrayList<>(read());
            if (file != null && !lines.contains(lineage.toString())) {
                lines.add(lineage.toString());
                write(lines.subList(Math.max(0, lines.size() - LIMIT), lines.size()));
            }
        }
    }

    /** Takes back that a cache of that lineage is gone: somebody who did not know runs it. */
    void strike(UUID lineage) {
        synchronized (Undeployed.class) {
            List<String> lines = new ArrayList<>(read());
            if (lines.remove(lineage.toString())) {
                write(lines);
            }
        }
    }

    /** Which of these lineages were undeployed. */
    Set<UUID> among(Collection<UUID> lineages) {
        List<String> lines = lineages.isEmpty() ? List.of() : read();
        return lineages.stream().filter(each -> lines.contains(each.toString()))
                .collect(Collectors.toSet());
    }

    private void write(List<String> lines) {
        try {
            SyncedFile.replace(file, String.join("\n", lines) + "\n");
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot write " + file, failure);
        }
    }

    private List<String> read() {
        try {
            return file == null || !Files.exists(file) ? List.of()
                    : Files.readAllLines(file, StandardCharsets.US_ASCII);
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot read " + file, failure);
        }
    }
}
