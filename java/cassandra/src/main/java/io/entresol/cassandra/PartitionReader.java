package io.entresol.cassandra;

import com.google.common.collect.Iterators;
import io.entresol.OrderedTable;
import io.entresol.TableRange;
import io.entresol.TableRow;
import java.util.Collections;
import java.util.Iterator;
import java.util.Objects;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ClusteringBound;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.marshal.ByteArrayAccessor;
import org.apache.cassandra.db.rows.AbstractUnfilteredRowIterator;
import org.apache.cassandra.db.rows.DeserializationHelper;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.RowAndDeletionMergeIterator;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.bytecomparable.ByteSource;

/** Reads one partition of an ordered table, for one query. For one thread. */
final class PartitionReader {
    /** The terminator of a complete clustering, between those of the bounds around it. */
    private static final byte EXACT = ByteSource.TERMINATOR;
    /** Bytes of rows that are read with one call. */
    private static final int PAGE_BYTES = 8 << 10;

    final Source source;
    final DecoratedKey key;
    final byte[] prefix;

    /** Where rows are read from, and what of them is asked for. */
    record Source(OrderedTable table, TableMetadata metadata, RowFold.Folding folding,
            ColumnFilter filter, boolean hasHeads) {
        static Source of(EntresolMemtable memtable, Layouts layouts, TableMetadata metadata,
                ColumnFilter filter) {
            DeserializationHelper helper = new DeserializationHelper(metadata, RowCodec.VERSION,
                    DeserializationHelper.Flag.LOCAL, filter);
            return new Source(memtable.table(), metadata,
                    new RowFold.Folding(layouts, metadata, helper), filter, memtable.hasHeads());
        }
    }

    PartitionReader(Source source, DecoratedKey key, byte[] prefix) {
        this.source = source;
        this.key = key;
        this.prefix = prefix;
    }

    /** The rows of slices; the deletions of the partition among them. */
    UnfilteredRowIterator rows(Slices slices, boolean reversed) {
        if (slices.size() == 1 && !source.hasHeads) {
            byte[] row = named(slices.get(0));
            if (row != null) {
                return new InSlices(Head.NONE, slices, reversed, row(row));
            }
        }
        if (slices.size() == 1 && !reversed && slices.get(0).start().isBottom()) {
            // The head is the record before the first row: one read has both.
            byte[] end = bound(slices.get(0).end().isTop() ? null : slices.get(0), false);
            StoredRows rows = new StoredRows(this, range(RowKey.of(prefix, RowKey.HEAD), end));
            return new InSlices(rows.head(), slices, false, rows);
        }
        return new InSlices(head(), slices, reversed);
    }

    /** The head alone. */
    Head head() {
        if (!source.hasHeads) {
            return Head.NONE;
        }
        Head head = source.table.read(RowKey.of(prefix, RowKey.HEAD), source.folding::head);
        return head == null ? Head.NONE : head;
    }

    /** The clustering of a record's key. */
    Clustering<?> clustering(byte[] record) {
        if (source.metadata.comparator.size() == 0) {
            return Clustering.EMPTY;
        }
        return source.metadata.comparator.clusteringFromByteComparable(ByteArrayAccessor.instance,
                RowKey.clustering(record, prefix.length));
    }

    private byte[] bound(Slice slice, boolean isStart) {
        if (slice == null) {
            return RowKey.of(prefix, RowKey.END);
        }
        return RowKey.row(prefix, source.metadata, isStart ? slice.start() : slice.end());
    }

    private Iterator<Row> rows(Slice slice, boolean reversed) {
        byte[] named = named(slice);
        if (named != null) {
            return row(named);
        }
        TableRange range = range(bound(slice, true), bound(slice, false));
        return new StoredRows(this, reversed ? range.descending() : range);
    }

    /** The key of the one row that a slice names; null if it is of several. */
    private byte[] named(Slice slice) {
        ClusteringBound<?> start = slice.start();
        ClusteringBound<?> end = slice.end();
        int size = source.metadata.comparator.size();
        if (start.size() != size || end.size() != size) {
            return null;
        }
        for (int component = 0; component < size; component++) {
            if (!Objects.equals(start.bufferAt(component), end.bufferAt(component))) {
                return null;
            }
        }
        byte[] key = bound(slice, true);
        key[key.length - 1] = EXACT;
        return key;
    }

    private Iterator<Row> row(byte[] exact) {
        Row row = source.table.read(exact, (TableRow record) ->
                source.folding.row(record, clustering(exact)));
        return row == null ? Collections.emptyIterator() : Iterators.singletonIterator(row);
    }

    private static TableRange range(byte[] low, byte[] high) {
        return TableRange.ALL.from(low).below(high).pageBytes(PAGE_BYTES);
    }

    /** Slices, one after the other in the order of the query. */
    private final class InSlices extends AbstractUnfilteredRowIterator {
        private final Head head;
        private final Slices slices;
        private Iterator<Row> rows;
        private Iterator<Unfiltered> slice;
        private int next;

        InSlices(Head head, Slices slices, boolean reversed) {
            super(source.metadata, key, head.deletion().getPartitionDeletion(),
                    source.filter.fetchedColumns(), head.staticRow(source.filter, source.metadata), reversed,
                    EncodingStats.NO_STATS);
            this.head = head;
            this.slices = slices;
        }

        /** Of one slice, whose rows are being read. */
        InSlices(Head head, Slices slices, boolean reversed, Iterator<Row> rows) {
            this(head, slices, reversed);
            begin(rows, slices.get(0));
            next = 1;
        }

        @Override
        protected Unfiltered computeNext() {
            while (slice == null || !slice.hasNext()) {
                end();
                if (next == slices.size()) {
                    return endOfData();
                }
                Slice at = slices.get(isReverseOrder ? slices.size() - 1 - next : next);
                next++;
                begin(rows(at, isReverseOrder), at);
            }
            return slice.next();
        }

        @Override
        public void close() {
            end();
            next = slices.size();
        }

        private void begin(Iterator<Row> read, Slice at) {
            rows = read;
            Iterator<RangeTombstone> ranges = head.deletion().rangeIterator(at, isReverseOrder);
            slice = new RowAndDeletionMergeIterator(source.metadata, key,
                    partitionLevelDeletion(), source.filter, Rows.EMPTY_STATIC_ROW, isReverseOrder,
                    EncodingStats.NO_STATS, read, ranges, true);
        }

        private void end() {
            if (rows instanceof StoredRows stored) {
                stored.close();
            }
            slice = null;
        }
    }
}
