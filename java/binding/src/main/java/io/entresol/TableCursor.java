package io.entresol;

import io.entresol.Pages.Page;

/**
 * A scan of an {@link OrderedTable} that stands on one row at a time, and reads many with a call. It
 * holds no lock. Each page is read as the table is then: rows that are there all the while come once,
 * those that change meanwhile as they were before or after. Pages of a range
 * {@link TableRange#atOneMoment} show batches whole. A cursor that is never closed keeps some memory
 * until it is collected. For one thread at a time.
 */
public final class TableCursor extends TableRow implements AutoCloseable {
    /** In place of a rank: the range says where it begins. */
    static final long BY_KEY = -1;

    private final OrderedTable table;
    private final TableRange range;
    private final boolean folds;
    private Page page;
    /** Where the next row of the page is, and where they end. */
    private int next;
    private int end;
    private boolean goesOn;
    private long left;
    /** The bound that moves: the lowest key, or the end where it descends. */
    private byte[] bound;
    private byte[] folded;
    /** Of the first row, until that was read. */
    private long rank;
    private int moments;

    TableCursor(OrderedTable table, TableRange range, boolean folds, long rank) {
        this.table = table;
        this.rank = rank;
        this.range = range;
        this.folds = folds;
        left = range.limit;
        bound = range.descends ? range.high : range.low;
        goesOn = left > 0;
    }

    /** Goes to the next row; whether there is one. */
    public boolean next() {
        while (left > 0) {
            if (next == end && !read()) {
                break;
            }
            next = setRecord(page, next);
            if (folds) {
                folded = table.fold(this);
                if (folded == null) {
                    continue;
                }
            }
            left--;
            return true;
        }
        folded = null;
        clear();
        return false;
    }

    /**
     * The value of the row, copied. Of an unfolded scan, its base.
     */
    public byte[] value() {
        return folded == null || folded == MergeFunction.KEEP ? base() : folded;
    }

    /**
     * Of how many moments the rows so far are, in a range {@link TableRange#atOneMoment}: 1 as long
     * as all are of one. 0 of other ranges, and before the first row.
     */
    public int moments() {
        return moments;
    }

    /** Gives memory back; there is no next row then. */
    @Override
    public void close() {
        left = 0;
        clear();
        if (page != null) {
            table.tables.pages.give(page);
            page = null;
        }
    }

    private boolean read() {
        if (!goesOn) {
            return false;
        }
        if (page != null && isSet()) {
            byte[] last = key();
            bound = range.descends ? last : java.util.Arrays.copyOf(last, last.length + 1);
            rank = BY_KEY;
        }
        byte[] low = range.descends ? range.low : bound;
        byte[] high = range.descends ? bound : range.high;
        int from = ScanRequest.bytes(low, high);
        long needed = Math.max(range.pageBytes, from + (1L << 10));
        while (true) {
            if (page == null || page.bytes() < needed) {
                page = table.tables.pages.take(needed);
            }
            ScanRequest request = new ScanRequest(page, low, high, range.descends, left);
            if (rank != BY_KEY) {
                request.from(rank);
            }
            if (range.isOfMoments) {
                request.atOneMoment();
            }
            long rows = table.scan(request);
            goesOn = request.goesOn();
            next = from;
            end = rows > 0 ? from + (int) request.found() : from;
            if (rows > 0 || !goesOn) {
                moments += rows > 0 && range.isOfMoments ? 1 : 0;
                return rows > 0;
            }
            // One row is larger than the page.
            needed = from + request.found() + 64;
        }
    }
}
