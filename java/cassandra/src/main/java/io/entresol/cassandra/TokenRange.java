package io.entresol.cassandra;

import io.entresol.TableCursor;
import io.entresol.TableRange;
import io.entresol.cassandra.PartitionReader.Source;
import java.util.NoSuchElementException;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.AbstractUnfilteredPartitionIterator;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.AbstractBounds;
import org.apache.cassandra.schema.TableMetadata;

/**
 * The partitions of a range of the ring, in its order. Small ones are gathered from one pass over
 * their rows. A wide one is read by whoever asks for its rows. For one thread.
 */
final class TokenRange extends AbstractUnfilteredPartitionIterator {
    private final Partitions partitions;
    private final ColumnFilter columns;
    private final DataRange range;

    TokenRange(EntresolMemtable memtable, ColumnFilter columns, DataRange range) {
        this.columns = columns;
        this.range = range;
        TableMetadata metadata = memtable.metadata();
        partitions = new Partitions(memtable, memtable.source(metadata, columns),
                rows(range.keyRange()));
    }

    @Override
    public TableMetadata metadata() {
        return partitions.source.metadata();
    }

    @Override
    public boolean hasNext() {
        return partitions.hasNext();
    }

    @Override
    public UnfilteredRowIterator next() {
        Partition partition = partitions.next();
        return range.clusteringIndexFilter(partition.partitionKey())
                .getUnfilteredRowIterator(columns, partition);
    }

    @Override
    public void close() {
        partitions.close();
    }

    /** The records of partitions between two positions. */
    static TableRange rows(AbstractBounds<PartitionPosition> bounds) {
        TableRange rows = TableRange.ALL;
        if (!bounds.left.isMinimum()) {
            rows = rows.from(RowKey.bound(bounds.left, bounds.inclusiveLeft()));
        }
        return bounds.right.isMinimum() ? rows
                : rows.below(RowKey.bound(bounds.right, !bounds.inclusiveRight()));
    }

    /** Partitions, one after the other. */
    static final class Partitions implements java.util.Iterator<Partition>, AutoCloseable {
        final Source source;
        private final EntresolMemtable memtable;
        private final TableRange range;
        private TableCursor cursor;
        private RowKey.Owner owner;

        Partitions(EntresolMemtable memtable, Source source, TableRange range) {
            this.memtable = memtable;
            this.source = source;
            this.range = range;
            cursor = source.table().scanUnfolded(range);
            advance();
        }

        @Override
        public boolean hasNext() {
            return owner != null;
        }

        @Override
        public Partition next() {
            if (owner == null) {
                throw new NoSuchElementException("the range has no partition left");
            }
            RowKey.Owner at = owner;
            GatheredPartition gathered = new GatheredPartition(source, at);
            while (true) {
                if (!gathered.add(cursor)) {
                    skip(at);
                    return new StoredPartition(memtable, source.metadata(), at.key());
                }
                if (!advance() || owner != at) {
                    return gathered.built();
                }
            }
        }

        @Override
        public void close() {
            cursor.close();
            owner = null;
        }

        /** Goes on behind a partition. */
        private void skip(RowKey.Owner wide) {
            cursor.close();
            cursor = source.table().scanUnfolded(
                    range.from(RowKey.of(wide.prefix(), RowKey.END)));
            advance();
        }

        /** Goes to the next record, and says whose it is; whether there is one. */
        private boolean advance() {
            if (!cursor.next()) {
                close();
                return false;
            }
            byte[] key = cursor.key();
            if (owner == null || !owner.owns(key)) {
                owner = RowKey.owner(key, source.metadata());
            }
            return true;
        }
    }
}
