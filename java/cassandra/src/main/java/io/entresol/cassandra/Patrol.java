package io.entresol.cassandra;

import io.entresol.OrderedTable;
import io.entresol.TableCursor;
import io.entresol.TableRange;
import java.nio.ByteBuffer;
import java.util.function.LongConsumer;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.LivenessInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.btree.BTree;

/**
 * One walk over a table for what may be purged where no write comes by. It removes no record itself,
 * and reads nothing that a writer may change meanwhile: it adds parts, and the merge of the leaf does
 * the rest. A row that has something to purge gets an empty part. A row that its partition's head
 * deletes gets that deletion as its own. A head whose deletions are past their grace then gets a part
 * that ends them, which stands behind those of its rows in the journal.
 */
final class Patrol {
    private final EntresolMemtable memtable;
    private final TableMetadata metadata;
    private final Purge purge;
    private final LongConsumer pace;
    private final RowFold.Folding folding;
    private final OrderedTable table;
    private Batches batches;
    private RowKey.Owner owner;
    private Head head = Head.NONE;
    private long parts;
    private long partitions;

    /**
     * @param pace is told how many bytes were walked over, and returns when the walk may go on
     */
    Patrol(EntresolMemtable memtable, Purge purge, LongConsumer pace) {
        this.memtable = memtable;
        this.purge = purge;
        this.pace = pace;
        metadata = memtable.metadata();
        folding = memtable.folding(metadata);
        table = memtable.table();
    }

    /** Walks over the whole table; how many parts were added. */
    long walk() {
        try (Batches all = new Batches(memtable.batch());
                TableCursor records = table.scanUnfolded(TableRange.ALL)) {
            batches = all;
            while (records.next()) {
                byte[] key = records.key();
                if (owner == null || !owner.owns(key)) {
                    endPartition();
                    owner = RowKey.owner(key, metadata);
                    partitions++;
                }
                look(key, records);
                pace.accept(key.length + Math.max(0, records.baseLength()));
            }
            endPartition();
            batches.write();
        }
        memtable.notePartitions(partitions);
        return parts;
    }

    private void look(byte[] key, TableCursor record) {
        if (key[owner.prefix().length] == RowKey.HEAD) {
            head = folding.head(record);
            return;
        }
        Clustering<?> clustering = new PartitionReader(memtable.source(metadata), owner.key(),
                owner.prefix()).clustering(key);
        DeletionTime shadow = shadow(clustering);
        if (purge.shouldPurge(shadow)) {
            add(key, row(clustering, Row.Deletion.regular(shadow)));
        } else if (purge.touches(RowCodec.purgeMoment(record))) {
            add(key, row(clustering, Row.Deletion.LIVE));
        }
    }

    /** The deletion of the head that holds for a row. */
    private DeletionTime shadow(Clustering<?> clustering) {
        DeletionTime whole = head.deletion().getPartitionDeletion();
        RangeTombstone range = head.deletion().rangeCovering(clustering);
        return range != null && range.deletionTime().supersedes(whole) ? range.deletionTime() : whole;
    }

    private static Row row(Clustering<?> clustering, Row.Deletion deletion) {
        return BTreeRow.create(clustering, LivenessInfo.EMPTY, deletion, BTree.empty());
    }

    private void endPartition() {
        if (owner != null && head.hasPurgeable(purge, metadata)) {
            // Behind the parts of the partition's rows.
            batches.write();
            byte[] end = folding.codec.ending(purge);
            batches.next().add(table, RowKey.of(owner.prefix(), RowKey.HEAD), end);
            parts++;
        }
        head = Head.NONE;
    }

    private void add(byte[] key, Row row) {
        try (DataOutputBuffer out = new DataOutputBuffer()) {
            folding.codec.write(row, out);
            batches.next().add(table, ByteBuffer.wrap(key), out.asNewBuffer());
        }
        parts++;
    }
}
