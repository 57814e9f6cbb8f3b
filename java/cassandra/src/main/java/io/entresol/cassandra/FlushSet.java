package io.entresol.cassandra;

import io.entresol.TableRange;
import java.util.Iterator;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.schema.TableMetadata;

/** The partitions of a range, for whoever writes SSTables of them. */
final class FlushSet implements Memtable.FlushablePartitionSet<Partition> {
    private final EntresolMemtable memtable;
    private final TableMetadata metadata;
    private final PartitionPosition from;
    private final PartitionPosition to;
    private final CommitLogPosition upperBound;
    private long partitions;
    private long keysBytes;

    FlushSet(EntresolMemtable memtable, PartitionPosition from, PartitionPosition to) {
        this.memtable = memtable;
        this.from = from;
        this.to = to;
        metadata = memtable.metadata();
        upperBound = memtable.getFinalCommitLogUpperBound();
        // Filters of SSTables are sized by these.
        partitions().forEachRemaining(partition -> {
            partitions++;
            keysBytes += partition.partitionKey().getKeyLength();
        });
    }

    @Override
    public Memtable memtable() {
        return memtable;
    }

    @Override
    public PartitionPosition from() {
        return from;
    }

    @Override
    public PartitionPosition to() {
        return to;
    }

    @Override
    public CommitLogPosition commitLogLowerBound() {
        return memtable.getCommitLogLowerBound();
    }

    @Override
    public CommitLogPosition commitLogUpperBound() {
        return upperBound;
    }

    @Override
    public RegularAndStaticColumns columns() {
        return metadata.regularAndStaticColumns();
    }

    @Override
    public EncodingStats encodingStats() {
        return EncodingStats.NO_STATS;
    }

    @Override
    public TableMetadata metadata() {
        return metadata;
    }

    @Override
    public long partitionCount() {
        return partitions;
    }

    @Override
    public long partitionKeysSize() {
        return keysBytes;
    }

    @Override
    public long dataSize() {
        return memtable.getLiveDataSize();
    }

    @Override
    public Iterator<Partition> iterator() {
        return memtable.temporaries().recording(partitions());
    }

    private Iterator<Partition> partitions() {
        TableRange range = TableRange.ALL;
        if (from != null && !from.isMinimum()) {
            range = range.from(RowKey.bound(from, true));
        }
        if (to != null && !to.isMinimum()) {
            range = range.below(RowKey.bound(to, true));
        }
        return new TokenRange.Partitions(memtable,
                memtable.source(metadata, ColumnFilter.all(metadata)), range);
    }
}
