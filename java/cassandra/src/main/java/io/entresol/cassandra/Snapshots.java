package io.entresol.cassandra;

import java.util.UUID;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.memtable.Memtable.FlushablePartitionSet;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.SSTableTxnWriter;
import org.apache.cassandra.io.util.File;

/**
 * Writes SSTables of all rows into the folder of a snapshot, as Cassandra's own snapshots have them:
 * any Cassandra reads them.
 */
final class Snapshots {
    private Snapshots() {
    }

    /** Writes a memtable's rows. A snapshot that a repair takes for itself needs none. */
    static void write(FlushablePartitionSet<? extends Partition> rows, ColumnFamilyStore cfs,
            String name) {
        if (isOfRepair(name)) {
            return;
        }
        File folder = Directories.getSnapshotDirectory(
                cfs.getDirectories().getDirectoryForNewSSTables(), name);
        SerializationHeader header = new SerializationHeader(true, rows.metadata(), rows.columns(),
                rows.encodingStats());
        try (SSTableTxnWriter writer = SSTableTxnWriter.create(cfs,
                cfs.newSSTableDescriptor(folder), Math.max(1, rows.partitionCount()), 0, null, false,
                header)) {
            for (Partition partition : rows) {
                try (UnfilteredRowIterator all = partition.unfilteredIterator()) {
                    if (!all.isEmpty()) {
                        writer.append(all);
                    }
                }
            }
            writer.finish(false);
        }
    }

    private static boolean isOfRepair(String name) {
        try {
            return name.equals(UUID.fromString(name).toString());
        } catch (IllegalArgumentException another) {
            return false;
        }
    }
}
