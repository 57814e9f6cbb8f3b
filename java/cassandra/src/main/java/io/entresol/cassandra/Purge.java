package io.entresol.cassandra;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DeletionPurger;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.FBUtilities;

/**
 * Which tombstones and expired cells may go at a moment: those past {@code gc_grace_seconds} that
 * are older than all that SSTables of the table hold.
 *
 * @param now seconds since 1970
 * @param before a local deletion time below this is past the grace
 * @param maxTimestamp a timestamp below this is older than what SSTables hold
 */
record Purge(long now, long before, long maxTimestamp) implements DeletionPurger {
    /** Nothing may go. */
    static final Purge NOTHING = new Purge(0, Long.MIN_VALUE, Long.MIN_VALUE);

    /** What may go now. It asks for the table's SSTables. */
    static Purge of(ColumnFamilyStore cfs, TableMetadata metadata) {
        long now = FBUtilities.nowInSeconds();
        if (cfs == null || cfs.getCompactionStrategyManager().onlyPurgeRepairedTombstones()) {
            return NOTHING;
        }
        long least = Long.MAX_VALUE;
        for (SSTableReader sstable : cfs.getLiveSSTables()) {
            least = Math.min(least, sstable.getMinTimestamp());
        }
        return new Purge(now, now - metadata.params.gcGraceSeconds, least);
    }

    /** Whether a value with this purge moment has something that may go. */
    boolean touches(long purgeMoment) {
        return purgeMoment < before;
    }

    @Override
    public boolean shouldPurge(long timestamp, long localDeletionTime) {
        return localDeletionTime < before && timestamp < maxTimestamp;
    }
}
