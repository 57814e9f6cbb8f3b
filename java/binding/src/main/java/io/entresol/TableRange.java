package io.entresol;

import java.util.Arrays;

/**
 * Which rows of an {@link OrderedTable} a scan gives, and in which order; immutable, each method
 * gives a changed copy. Keys are compared as bytes without a sign.
 */
public final class TableRange {
    /** All rows from the lowest key up. */
    public static final TableRange ALL = new TableRange(
            new byte[0], null, new Reading(false, Long.MAX_VALUE, Pages.BYTES, false));

    final byte[] low;
    final byte[] high;
    final boolean descends;
    final long limit;
    final int pageBytes;
    final boolean isOfMoments;

    /** What is read with one call, and how. */
    private record Reading(boolean descends, long limit, int pageBytes, boolean isOfMoments) {
    }

    private TableRange(byte[] low, byte[] high, Reading reading) {
        this.low = low;
        this.high = high;
        descends = reading.descends;
        limit = reading.limit;
        pageBytes = reading.pageBytes;
        isOfMoments = reading.isOfMoments;
    }

    /** Rows whose keys begin so. */
    public static TableRange startingWith(byte[] prefix) {
        int last = prefix.length - 1;
        while (last >= 0 && prefix[last] == (byte) 0xFF) {
            last--;
        }
        TableRange range = ALL.from(prefix);
        if (last < 0) {
            return range;
        }
        byte[] end = Arrays.copyOf(prefix, last + 1);
        end[last]++;
        return range.below(end);
    }

    /** From this key on, which belongs to the range. */
    public TableRange from(byte[] key) {
        return new TableRange(key.clone(), high, reading());
    }

    /** Up to this key, which does not belong to the range. */
    public TableRange below(byte[] key) {
        return new TableRange(low, key.clone(), reading());
    }

    /** From the highest key down. */
    public TableRange descending() {
        return with(new Reading(true, limit, pageBytes, isOfMoments));
    }

    /** So many rows at most. */
    public TableRange limit(long rows) {
        if (rows < 0) {
            throw new IllegalArgumentException("a limit of " + rows + "; expected 0 or more");
        }
        return with(new Reading(descends, rows, pageBytes, isOfMoments));
    }

    /**
     * So many bytes of rows are read with one call, 1 KiB to 64 MiB; else 64 KiB. A row that is
     * larger is read alone.
     */
    public TableRange pageBytes(int bytes) {
        if (bytes < 1 << 10 || bytes > 64 << 20) {
            throw new IllegalArgumentException(
                    "a page of " + bytes + " bytes; expected 1 KiB to 64 MiB");
        }
        return with(new Reading(descends, limit, bytes, isOfMoments));
    }

    /**
     * What is read with one call is of one moment: a batch over several of its rows is seen whole or
     * not at all. {@link TableCursor#moments} says of how many moments the rows are; with
     * {@link #pageBytes} that hold the range they are of one, unless more than 4096 of them wait
     * for merges. For ranges of some leaves, as one partition of many is: where a leaf of the range
     * was merged meanwhile it is read anew. Where merges come between again and again the cursor's
     * {@code next} does some of them, for up to ten seconds; then it throws a {@link StoreException}
     * of kind {@link StoreException.Kind#BUSY}.
     */
    public TableRange atOneMoment() {
        return with(new Reading(descends, limit, pageBytes, true));
    }

    private Reading reading() {
        return new Reading(descends, limit, pageBytes, isOfMoments);
    }

    private TableRange with(Reading reading) {
        return new TableRange(low, high, reading);
    }
}
