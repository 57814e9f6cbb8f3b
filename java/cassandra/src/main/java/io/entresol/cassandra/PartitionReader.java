package io.entresol.cassandra;

import io.entresol.OrderedTable;
import io.entresol.TableRange;
import io.entresol.TableRow;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.cassandra.db.Clustering;
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
            ColumnFilter filter) {
        static Source of(OrderedTable table, Layouts layouts, TableMetadata metadata,
                ColumnFilter filter) {
            DeserializationHelper helper = new DeserializationHelper(metadata, RowCodec.VERSION,
                    DeserializationHelper.Flag.LOCAL, filter);
            return new Source(table, metadata,
                    new RowFold.Folding(layouts, metadata, helper), filter);
        }
    }

    PartitionReader(Source source, DecoratedKey key, byte[] prefix) {
        this.source = source;
        this.key = key;
        this.prefix = prefix;
    }

    /** The rows of slices; the deletions of the partition among them. */
    UnfilteredRowIterator rows(Slices slices, boolean reversed) {
        if (slices.size() == 1 && !reversed && slices.get(0).start().isBottom()) {
            // The head is the record before the first row: one read has both.
            byte[] end = bound(slices.get(0).end().isTop() ? null : slices.get(0), false);
            StoredRows rows = new StoredRows(this, range(RowKey.of(prefix, RowKey.HEAD), end));
            return new InSlices(rows.head(), slices, rows);
        }
        return new InSlices(head(), slices, reversed);
    }

    /** The head alone. */
    Head head() {
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
        byte[] low = bound(slice, true);
        byte[] high = bound(slice, false);
        int last = low.length - 1;
        if (slice.start().size() == source.metadata.comparator.size()
                && Arrays.equals(low, 0, last, high, 0, high.length - 1)) {
            return row(low);
        }
        TableRange range = range(low, high);
        return new StoredRows(this, reversed ? range.descending() : range);
    }

    private Iterator<Row> row(byte[] bound) {
        bound[bound.length - 1] = EXACT;
        Row row = source.table.read(bound, (TableRow record) ->
                source.folding.row(record, clustering(bound)));
        return row == null ? List.<Row>of().iterator() : List.of(row).iterator();
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
        InSlices(Head head, Slices slices, Iterator<Row> rows) {
            this(head, slices, false);
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
