package io.entresol;

import java.util.Arrays;

/**
 * Which rows of an {@link OrderedTable} a scan gives, and in which order; immutable, each method
 * gives a changed copy. Keys are compared as bytes without a sign.
 */
public final class TableRange {
    /** All rows from the lowest key up. */
    public static final TableRange ALL =
            new TableRange(new byte[0], null, false, Long.MAX_VALUE, Pages.BYTES);

    final byte[] low;
    final byte[] high;
    final boolean descends;
    final long limit;
    final int pageBytes;

    private TableRange(byte[] low, byte[] high, boolean descends, long limit, int pageBytes) {
        this.low = low;
        this.high = high;
        this.descends = descends;
        this.limit = limit;
        this.pageBytes = pageBytes;
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
        return new TableRange(key.clone(), high, descends, limit, pageBytes);
    }

    /** Up to this key, which does not belong to the range. */
    public TableRange below(byte[] key) {
        return new TableRange(low, key.clone(), descends, limit, pageBytes);
    }

    /** From the highest key down. */
    public TableRange descending() {
        return new TableRange(low, high, true, limit, pageBytes);
    }

    /** So many rows at most. */
    public TableRange limit(long rows) {
        if (rows < 0) {
            throw new IllegalArgumentException("a limit of " + rows + "; expected 0 or more");
        }
        return new TableRange(low, high, descends, rows, pageBytes);
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
        return new TableRange(low, high, descends, limit, bytes);
    }
}
