package io.entresol.cassandra;

import io.entresol.MergeFunction;
import io.entresol.TableRow;
import java.nio.ByteBuffer;
import java.util.function.Supplier;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.rows.DeserializationHelper;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.schema.TableMetadata;

/**
 * Folds the parts of a row as Cassandra reconciles cells, and lets go of what may be purged. A head's
 * deletions stay until the patrol has removed what they delete.
 */
final class RowFold implements MergeFunction {
    private final Layouts layouts;
    private final Supplier<TableMetadata> schema;
    private final Supplier<Purge> purges;

    RowFold(Layouts layouts, Supplier<TableMetadata> schema, Supplier<Purge> purges) {
        this.layouts = layouts;
        this.schema = schema;
        this.purges = purges;
    }

    @Override
    public boolean foldsAllRows() {
        return true;
    }

    @Override
    public byte[] fold(TableRow row) {
        if (Parts.areUnfinished(row)) {
            // The merge asks again, and finds all of it.
            throw new IllegalStateException("a part is being added");
        }
        ByteBuffer first = row.hasBase() ? row.baseSlice() : new Parts(row).next();
        if (RowCodec.isHead(first)) {
            return row.parts() == 0 ? KEEP : foldHead(row);
        }
        long moment = RowCodec.purgeMoment(row);
        if (row.parts() == 0 && moment == Long.MAX_VALUE) {
            return KEEP;
        }
        if (moment == Long.MAX_VALUE) {
            return foldRow(row, Purge.NOTHING);
        }
        Purge purge = purges.get();
        return row.parts() == 0 && !purge.touches(moment) ? KEEP : foldRow(row, purge);
    }

    private byte[] foldHead(TableRow row) {
        Folding folding = new Folding(layouts, schema.get());
        Head head = folding.head(row);
        if (head.isEmpty()) {
            return null;
        }
        try (DataOutputBuffer out = new DataOutputBuffer()) {
            folding.codec.write(head, out);
            return out.toByteArray();
        }
    }

    private byte[] foldRow(TableRow row, Purge purge) {
        TableMetadata metadata = schema.get();
        Folding folding = new Folding(layouts, metadata);
        Row folded = folding.row(row, Clustering.EMPTY);
        folded = folded.purge(purge, purge.now(), metadata.enforceStrictLiveness());
        if (folded == null || folded.isEmpty()) {
            return null;
        }
        try (DataOutputBuffer out = new DataOutputBuffer()) {
            folding.codec.write(folded, out);
            return out.toByteArray();
        }
    }

    /** Base and parts of a record, read for one state of the schema. */
    static final class Folding {
        final RowCodec codec;
        private final DeserializationHelper helper;

        Folding(Layouts layouts, TableMetadata metadata) {
            this(layouts, metadata, new DeserializationHelper(metadata, RowCodec.VERSION,
                    DeserializationHelper.Flag.LOCAL));
        }

        Folding(Layouts layouts, TableMetadata metadata, DeserializationHelper helper) {
            codec = new RowCodec(layouts.of(metadata));
            this.helper = helper;
        }

        /** The row; null if its only part is still being added. */
        Row row(TableRow record, Clustering<?> clustering) {
            Row folded = record.hasBase() ? codec.row(record.baseSlice(), clustering, helper) : null;
            for (Parts parts = new Parts(record); parts.hasNext();) {
                Row next = codec.row(parts.next(), clustering, helper);
                folded = folded == null ? next : Rows.merge(folded, next);
            }
            return folded;
        }

        Head head(TableRow record) {
            Head folded = record.hasBase() ? codec.head(record.baseSlice(), helper) : Head.NONE;
            for (Parts parts = new Parts(record); parts.hasNext();) {
                folded = codec.after(folded, parts.next(), helper);
            }
            return folded;
        }
    }
}
