package io.entresol.cassandra;

import com.google.common.collect.AbstractIterator;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories.OnTxnErr;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.format.SSTableFormat.Components;
import org.apache.cassandra.io.util.File;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The SSTables that Cassandra writes of a table on flash to validate or stream it, and then leaves
 * behind: a later start would take them for the table's own, and rows that were purged meanwhile
 * would come back. So their names are in the catalog from before they have rows on. They are removed
 * once nobody has their files open, or by the next start. Thread-safe.
 */
final class Temporaries {
    private static final Logger LOGGER = LoggerFactory.getLogger(Temporaries.class);
    private static final Path OPEN_FILES = Path.of("/proc/self/fd");

    private final Catalog catalog;
    private final TableName table;
    private final ColumnFamilyStore cfs;
    /** Those of this process that are not removed. */
    private final Set<String> recorded = ConcurrentHashMap.newKeySet();

    Temporaries(Catalog catalog, TableName table, ColumnFamilyStore cfs) {
        this.catalog = catalog;
        this.table = table;
        this.cfs = cfs;
    }

    /** Partitions for a writer of SSTables, which may begin further ones on its way. */
    <P> Iterator<P> recording(Iterator<P> partitions) {
        if (cfs == null) {
            return partitions;
        }
        List<File> folders = cfs.getDirectories().getCFDirectories();
        return new AbstractIterator<>() {
            private long seen = -1;

            @Override
            protected P computeNext() {
                long changed = folders.stream().mapToLong(File::lastModified).sum();
                if (changed != seen || !partitions.hasNext()) {
                    seen = changed;
                    record();
                }
                return partitions.hasNext() ? partitions.next() : endOfData();
            }
        };
    }

    /** Records the SSTables that somebody has begun to write, and that nobody else knows. */
    private void record() {
        Set<Descriptor> known = cfs.getLiveSSTables().stream()
                .map(sstable -> sstable.descriptor).collect(Collectors.toSet());
        cfs.getDirectories().sstableLister(OnTxnErr.THROW).skipTemporary(true).list()
                .forEach((one, components) -> {
                    // One that is complete may be imported at this moment.
                    if (!known.contains(one) && !components.contains(Components.STATS)) {
                        record(one.baseFile().toPath().toString());
                    }
                });
    }

    private void record(String base) {
        if (!recorded.contains(base)) {
            catalog.addTemporary(table, base);
            recorded.add(base);
        }
    }

    /** Removes those of the last process, before the table's SSTables are opened. */
    void removeAll() {
        catalog.temporaries(table).forEach(this::remove);
    }

    /** Removes those whose files nobody has open: they were open when they were recorded. */
    synchronized void removeUnused() {
        List<String> candidates = List.copyOf(recorded);
        if (candidates.isEmpty()) {
            return;
        }
        Set<String> open = new HashSet<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(OPEN_FILES)) {
            for (Path file : files) {
                try {
                    open.add(Files.readSymbolicLink(file).toString());
                } catch (IOException closed) {
                    // Meanwhile.
                }
            }
        } catch (IOException unreadable) {
            LOGGER.warn("Cannot list {}: temporary SSTables stay until the next start", OPEN_FILES,
                    unreadable);
            return;
        }
        candidates.stream().filter(base -> open.stream().noneMatch(file ->
                file.startsWith(base + "-"))).forEach(this::remove);
    }

    private void remove(String base) {
        Descriptor one = Descriptor.fromFileWithComponent(new File(base + "-Data.db")).left;
        one.getFormat().allComponents()
                .forEach(component -> one.fileFor(component).deleteIfExists());
        catalog.removeTemporary(table, base);
        recorded.remove(base);
        LOGGER.info("Removed the temporary SSTable {}", base);
    }
}
