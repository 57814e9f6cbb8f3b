package io.entresol;

import io.entresol.Pages.Page;

/**
 * The words of one page of a scan, which {@code entresol.h} draws, at the beginning of the page that
 * its rows go to.
 */
final class ScanRequest {
    private static final int WORDS = 10;
    private static final int HAS_HIGH = 1;
    private static final int DESCENDING = 2;
    private static final int BY_RANK = 4;
    private static final int AT_ONE_MOMENT = 8;

    private final Page page;

    /** Puts the words and the bounds, of which {@code high} may be null, to the page. */
    ScanRequest(Page page, byte[] low, byte[] high, boolean descends, long limit) {
        this.page = page;
        int at = WORDS * Long.BYTES;
        int after = page.set(at, low);
        set(0, page.address(at));
        set(1, low.length);
        set(2, page.address(after));
        set(3, high == null ? 0 : high.length);
        if (high != null) {
            page.set(after, high);
        }
        int from = bytes(low, high);
        set(4, (high == null ? 0 : HAS_HIGH) | (descends ? DESCENDING : 0));
        set(5, limit);
        set(6, page.address(from));
        set(7, page.bytes() - from);
        set(8, 0);
        set(9, 0);
    }

    /** It begins with the row of that rank. */
    void from(long rank) {
        set(0, rank);
        add(BY_RANK);
    }

    /** The page is of one moment. */
    void atOneMoment() {
        add(AT_ONE_MOMENT);
    }

    /** Bytes before the rows. */
    static int bytes(byte[] low, byte[] high) {
        return WORDS * Long.BYTES + low.length + (high == null ? 0 : high.length);
    }

    long address() {
        return page.address(0);
    }

    /** Bytes of the rows; where none fits, of the first. */
    long found() {
        return page.longWord(8 * Long.BYTES);
    }

    /** Whether there may be more rows. */
    boolean goesOn() {
        return page.longWord(9 * Long.BYTES) != 0;
    }

    private void add(int flag) {
        set(4, page.longWord(4 * Long.BYTES) | flag);
    }

    private void set(int word, long value) {
        page.setLong(word * Long.BYTES, value);
    }
}
