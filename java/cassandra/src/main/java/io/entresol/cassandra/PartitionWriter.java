package io.entresol.cassandra;

import io.entresol.OrderedTable;
import io.entresol.Store;
import io.entresol.TableBatch;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.io.util.DataOutputBuffer;

/** Writes updates of partitions, each as one batch: a part for each row that it touches. */
final class PartitionWriter {
    private final Store store;
    private final OrderedTable table;

    PartitionWriter(Store store, OrderedTable table) {
        this.store = store;
        this.table = table;
    }

    /** Whether an update changes the head of its partition. */
    static boolean hasHead(PartitionUpdate update) {
        return !update.deletionInfo().isLive() || !update.staticRow().isEmpty();
    }

    /** A batch with the parts of an update. Nothing of the update is kept. */
    TableBatch batch(PartitionUpdate update, RowCodec codec) {
        TableBatch batch = store.batch();
        byte[] prefix = RowKey.partition(update.partitionKey());
        try (DataOutputBuffer out = new DataOutputBuffer()) {
            Head head = new Head(update.deletionInfo(), update.staticRow());
            if (!head.isEmpty()) {
                codec.write(head, out);
                add(batch, RowKey.of(prefix, RowKey.HEAD), out);
            }
            for (Row row : update) {
                out.clear();
                codec.write(row, out);
                add(batch, RowKey.row(prefix, update.metadata(), row.clustering()), out);
            }
        }
        return batch;
    }

    private void add(TableBatch batch, byte[] key, DataOutputBuffer value) {
        Parts.add(batch, table, key, value.asNewBuffer());
    }
}
