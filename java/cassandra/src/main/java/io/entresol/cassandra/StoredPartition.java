package io.entresol.cassandra;

import io.entresol.cassandra.PartitionReader.Source;
import java.util.NavigableSet;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;

/** A partition that is read whenever it is asked, however wide it is. */
final class StoredPartition implements Partition {
    private final EntresolMemtable memtable;
    private final TableMetadata metadata;
    private final DecoratedKey key;

    StoredPartition(EntresolMemtable memtable, TableMetadata metadata, DecoratedKey key) {
        this.memtable = memtable;
        this.metadata = metadata;
        this.key = key;
    }

    @Override
    public TableMetadata metadata() {
        return metadata;
    }

    @Override
    public DecoratedKey partitionKey() {
        return key;
    }

    @Override
    public DeletionTime partitionLevelDeletion() {
        return reader(ColumnFilter.all(metadata)).head().deletion().getPartitionDeletion();
    }

    @Override
    public RegularAndStaticColumns columns() {
        return metadata.regularAndStaticColumns();
    }

    @Override
    public EncodingStats stats() {
        return EncodingStats.NO_STATS;
    }

    @Override
    public boolean isEmpty() {
        try (UnfilteredRowIterator rows = unfilteredIterator()) {
            return rows.isEmpty();
        }
    }

    @Override
    public boolean hasRows() {
        try (UnfilteredRowIterator rows = unfilteredIterator()) {
            while (rows.hasNext()) {
                if (rows.next().isRow()) {
                    return true;
                }
            }
            return false;
        }
    }

    @Override
    public Row getRow(Clustering<?> clustering) {
        ColumnFilter all = ColumnFilter.all(metadata);
        Slices slices = clustering == Clustering.STATIC_CLUSTERING ? Slices.NONE
                : Slices.with(metadata.comparator, Slice.make(clustering));
        try (UnfilteredRowIterator rows = unfilteredIterator(all, slices, false)) {
            if (clustering == Clustering.STATIC_CLUSTERING) {
                return rows.staticRow().isEmpty() ? null : rows.staticRow();
            }
            while (rows.hasNext()) {
                Unfiltered next = rows.next();
                if (next.isRow()) {
                    return (Row) next;
                }
            }
            return null;
        }
    }

    @Override
    public UnfilteredRowIterator unfilteredIterator() {
        return unfilteredIterator(ColumnFilter.all(metadata), Slices.ALL, false);
    }

    @Override
    public UnfilteredRowIterator unfilteredIterator(ColumnFilter columns, Slices slices,
            boolean reversed) {
        return reader(columns).rows(slices, reversed);
    }

    @Override
    public UnfilteredRowIterator unfilteredIterator(ColumnFilter columns,
            NavigableSet<Clustering<?>> clusterings, boolean reversed) {
        Slices.Builder slices = new Slices.Builder(metadata.comparator, clusterings.size());
        clusterings.forEach(clustering -> slices.add(Slice.make(clustering)));
        return unfilteredIterator(columns, slices.build(), reversed);
    }

    private PartitionReader reader(ColumnFilter columns) {
        Source source = memtable.source(metadata, columns);
        return new PartitionReader(source, key, RowKey.partition(key));
    }
}
