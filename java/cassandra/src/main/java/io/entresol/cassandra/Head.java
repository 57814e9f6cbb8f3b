package io.entresol.cassandra;

import java.io.IOException;
import java.util.Iterator;
import org.apache.cassandra.db.ClusteringBound;
import org.apache.cassandra.db.ClusteringBoundOrBoundary;
import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.MutableDeletionInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.io.util.DataInputPlus;
import org.apache.cassandra.io.util.DataOutputPlus;
import org.apache.cassandra.schema.TableMetadata;

/**
 * What a partition has beside rows: its deletion, its range tombstones, its static row. Immutable as
 * far as anybody sees.
 */
record Head(DeletionInfo deletion, Row staticRow) {
    /** Nothing. */
    static final Head NONE = new Head(DeletionInfo.LIVE, Rows.EMPTY_STATIC_ROW);

    boolean isEmpty() {
        return deletion.isLive() && staticRow.isEmpty();
    }

    /** Both heads, whichever came first. */
    Head with(Head other) {
        DeletionInfo both = deletion.isLive() ? other.deletion
                : other.deletion.isLive() ? deletion : deletion.mutableCopy().add(other.deletion);
        Row row = staticRow.isEmpty() ? other.staticRow
                : other.staticRow.isEmpty() ? staticRow : Rows.merge(staticRow, other.staticRow);
        return new Head(both, row);
    }

    /** The head without what may be purged. */
    Head purged(Purge purge, TableMetadata metadata) {
        DeletionTime whole = deletion.getPartitionDeletion();
        MutableDeletionInfo left =
                new MutableDeletionInfo(purge.shouldPurge(whole) ? DeletionTime.LIVE : whole);
        deletion.rangeIterator(false).forEachRemaining(range -> {
            if (!purge.shouldPurge(range.deletionTime())) {
                left.add(range, metadata.comparator);
            }
        });
        // What the deletion hides must not outlive it.
        Row row = staticRow(ColumnFilter.all(metadata), metadata);
        row = row.isEmpty() ? null
                : row.purge(purge, purge.now(), metadata.enforceStrictLiveness());
        return new Head(left, row == null ? Rows.EMPTY_STATIC_ROW : row);
    }

    /** Whether something may be purged. */
    boolean hasPurgeable(Purge purge, TableMetadata metadata) {
        EncodingStats.Collector stats = new EncodingStats.Collector();
        collect(stats);
        return !isEmpty() && purge.touches(stats.get().minLocalDeletionTime)
                && stats.get().minLocalDeletionTime != EncodingStats.NO_STATS.minLocalDeletionTime
                && !purged(purge, metadata).equals(this);
    }

    /** The static row as a query sees it. */
    Row staticRow(ColumnFilter filter, TableMetadata metadata) {
        if (filter.fetchedColumns().statics.isEmpty() || staticRow.isEmpty()) {
            return Rows.EMPTY_STATIC_ROW;
        }
        Row row = staticRow.filter(filter, deletion.getPartitionDeletion(), false, metadata);
        return row == null ? Rows.EMPTY_STATIC_ROW : row;
    }

    void collect(EncodingStats.Collector stats) {
        deletion.collectStats(stats);
        if (!staticRow.isEmpty()) {
            Rows.collectStats(staticRow, stats);
        }
    }

    /** Writes the deletions. */
    void writeDeletions(SerializationHeader header, DataOutputPlus out) throws IOException {
        writeTime(deletion.getPartitionDeletion(), out);
        out.writeUnsignedVInt32(deletion.rangeCount());
        Iterator<RangeTombstone> ranges = deletion.rangeIterator(false);
        while (ranges.hasNext()) {
            RangeTombstone range = ranges.next();
            for (ClusteringBound<?> bound : new ClusteringBound<?>[] {
                range.deletedSlice().start(), range.deletedSlice().end()
            }) {
                ClusteringBoundOrBoundary.serializer.serialize(bound, out, RowCodec.VERSION,
                        header.clusteringTypes());
            }
            writeTime(range.deletionTime(), out);
        }
    }

    /** Reads the deletions. */
    static MutableDeletionInfo readDeletions(TableMetadata metadata, DataInputPlus in)
            throws IOException {
        MutableDeletionInfo deletion = new MutableDeletionInfo(readTime(in));
        for (int left = in.readUnsignedVInt32(); left > 0; left--) {
            Slice slice = Slice.make(readBound(metadata, in), readBound(metadata, in));
            deletion.add(new RangeTombstone(slice, readTime(in)), metadata.comparator);
        }
        return deletion;
    }

    private static ClusteringBound<?> readBound(TableMetadata metadata, DataInputPlus in)
            throws IOException {
        return (ClusteringBound<?>) ClusteringBoundOrBoundary.serializer.deserialize(in,
                RowCodec.VERSION, metadata.comparator.subtypes());
    }

    private static void writeTime(DeletionTime time, DataOutputPlus out) throws IOException {
        out.writeBoolean(!time.isLive());
        if (!time.isLive()) {
            out.writeLong(time.markedForDeleteAt());
            out.writeLong(time.localDeletionTime());
        }
    }

    private static DeletionTime readTime(DataInputPlus in) throws IOException {
        return in.readBoolean() ? DeletionTime.build(in.readLong(), in.readLong())
                : DeletionTime.LIVE;
    }
}
