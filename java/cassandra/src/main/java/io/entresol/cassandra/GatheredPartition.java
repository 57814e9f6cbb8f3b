package io.entresol.cassandra;

import io.entresol.TableRow;
import io.entresol.cassandra.PartitionReader.Source;
import org.apache.cassandra.db.partitions.AbstractBTreePartition;
import org.apache.cassandra.db.partitions.BTreePartitionData;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.btree.BTree;

/** A partition of few rows, in memory. */
final class GatheredPartition extends AbstractBTreePartition {
    /** A partition with more is wide. */
    private static final int ROWS_MAX = 128;

    private final Source source;
    private final PartitionReader reader;
    private final BTree.Builder<Row> rows;
    private int count;
    private Head head = Head.NONE;
    private BTreePartitionData data;

    GatheredPartition(Source source, RowKey.Owner owner) {
        super(owner.key());
        this.source = source;
        reader = new PartitionReader(source, owner.key(), owner.prefix());
        rows = BTree.builder(source.metadata().comparator);
        rows.auto(false);
    }

    /** Adds a record of the partition; whether there was room for it. */
    boolean add(TableRow record) {
        byte[] key = record.key();
        if (key[reader.prefix.length] == RowKey.HEAD) {
            head = source.folding().head(record);
            return true;
        }
        Row row = source.folding().row(record, reader.clustering(key));
        if (row != null) {
            rows.add(row);
            count++;
        }
        return count <= ROWS_MAX;
    }

    /** The same, once all records were added. */
    GatheredPartition built() {
        data = BTreePartitionData.unsafeConstruct(source.metadata().regularAndStaticColumns(),
                rows.build(), head.deletion(), head.staticRow(), EncodingStats.NO_STATS);
        return this;
    }

    @Override
    protected BTreePartitionData holder() {
        return data;
    }

    @Override
    protected boolean canHaveShadowedData() {
        return true;
    }

    @Override
    public TableMetadata metadata() {
        return source.metadata();
    }
}
