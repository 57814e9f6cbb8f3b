package io.entresol.cassandra;

import java.util.ArrayList;
import java.util.List;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.compaction.OperationType;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.index.transactions.UpdateTransaction;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.concurrent.OpOrder;

/**
 * Moves the rows of a table's SSTables to flash. They are written as updates are, a few at a time, and
 * an SSTable goes once all of its rows are durable. A move that is cut short leaves rows in both
 * places, which readers see once.
 */
final class Absorb {
    private static final int ROWS_A_BATCH = 64;

    private final EntresolMemtable memtable;
    private final ColumnFamilyStore cfs;

    Absorb(EntresolMemtable memtable, ColumnFamilyStore cfs) {
        this.memtable = memtable;
        this.cfs = cfs;
    }

    /** Moves all of them; how many SSTables went. */
    int run() {
        return cfs.runWithCompactionsDisabled(() -> {
            List<SSTableReader> moved = new ArrayList<>(cfs.getLiveSSTables());
            moved.forEach(this::move);
            memtable.sync();
            cfs.markObsolete(moved, OperationType.UNKNOWN);
            return moved.size();
        }, OperationType.UNKNOWN, false, false);
    }

    private void move(SSTableReader sstable) {
        try (ISSTableScanner partitions = sstable.getScanner()) {
            while (partitions.hasNext()) {
                try (UnfilteredRowIterator partition = partitions.next()) {
                    move(partition);
                }
            }
        }
    }

    private void move(UnfilteredRowIterator partition) {
        Pieces pieces = new Pieces(partition);
        do {
            put(pieces.next());
        } while (pieces.isOpen());
    }

    private void put(PartitionUpdate update) {
        try (OpOrder.Group group = Keyspace.writeOrder.start()) {
            // The indexes have these rows.
            memtable.put(update, UpdateTransaction.NO_OP, group);
        }
    }

    /** A partition in updates of a few rows, its deletion and static row in the first one. */
    private static final class Pieces {
        private final UnfilteredRowIterator partition;
        private RangeTombstoneMarker open;
        private boolean isFirst = true;

        Pieces(UnfilteredRowIterator partition) {
            this.partition = partition;
        }

        boolean isOpen() {
            return partition.hasNext();
        }

        PartitionUpdate next() {
            PartitionUpdate.Builder piece = new PartitionUpdate.Builder(partition.metadata(),
                    partition.partitionKey(), partition.columns(), ROWS_A_BATCH);
            if (isFirst) {
                isFirst = false;
                piece.addPartitionDeletion(partition.partitionLevelDeletion());
                if (!partition.staticRow().isEmpty()) {
                    piece.add(partition.staticRow());
                }
            }
            for (int rows = 0; rows < ROWS_A_BATCH && partition.hasNext(); rows++) {
                Unfiltered next = partition.next();
                if (next.isRow()) {
                    piece.add((Row) next);
                } else {
                    addRange(piece, (RangeTombstoneMarker) next);
                }
            }
            return piece.build();
        }

        private void addRange(PartitionUpdate.Builder piece, RangeTombstoneMarker marker) {
            if (marker.isClose(false)) {
                piece.add(new RangeTombstone(
                        Slice.make(open.openBound(false), marker.closeBound(false)),
                        marker.closeDeletionTime(false)));
            }
            if (marker.isOpen(false)) {
                open = marker;
            }
        }
    }
}
