package io.entresol.cassandra;

import java.util.Set;
import java.util.stream.Collectors;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories.OnTxnErr;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.service.ActiveRepairService;
import org.apache.cassandra.streaming.StreamManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The SSTables that Cassandra writes of a table on flash to validate or stream it, and then leaves
 * behind: a later start would take them for the table's own, and rows that were purged meanwhile
 * would come back. So their names are in the catalog from before they have rows on, and they are
 * removed once no repair or stream is left, or by the next start. Thread-safe.
 */
final class Temporaries {
    private static final Logger LOGGER = LoggerFactory.getLogger(Temporaries.class);

    private final Catalog catalog;
    private final TableName table;
    private final ColumnFamilyStore cfs;

    Temporaries(Catalog catalog, TableName table, ColumnFamilyStore cfs) {
        this.catalog = catalog;
        this.table = table;
        this.cfs = cfs;
    }

    /** Records the SSTables that somebody has begun to write, and that nobody else knows. */
    void record() {
        if (cfs != null) {
            Set<Descriptor> known = cfs.getLiveSSTables().stream()
                    .map(sstable -> sstable.descriptor).collect(Collectors.toSet());
            for (Descriptor one : cfs.getDirectories().sstableLister(OnTxnErr.THROW)
                    .skipTemporary(true).list().keySet()) {
                if (!known.contains(one)) {
                    catalog.addTemporary(table, one.baseFile().toPath().toString());
                }
            }
        }
    }

    /** Removes all that were recorded: before the table's SSTables are opened, or later. */
    synchronized void remove() {
        for (String base : catalog.temporaries(table)) {
            Descriptor one = Descriptor.fromFileWithComponent(new File(base + "-Data.db")).left;
            one.getFormat().allComponents()
                    .forEach(component -> one.fileFor(component).deleteIfExists());
            catalog.removeTemporary(table, base);
            LOGGER.info("Removed the temporary SSTable {}", base);
        }
    }

    /** The same, unless somebody may be reading them. */
    void removeUnused() {
        if (ActiveRepairService.instance().parentRepairSessionsCount() == 0
                && StreamManager.instance.getCurrentStreams().isEmpty()) {
            remove();
        }
    }
}
