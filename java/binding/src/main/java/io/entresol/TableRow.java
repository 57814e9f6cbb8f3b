package io.entresol;

import io.entresol.Pages.Page;
import java.nio.ByteBuffer;

/**
 * A row of an {@link OrderedTable} where it lies, in native memory: its key, and its value as a base
 * and the parts that were added to it and that no merge has folded. Valid until whoever gave it goes
 * on: the cursor to its next row, a function to its return. Methods without an array or a copy in
 * their names give slices of that memory, which later rows overwrite; they are for reading only.
 * From Java 22 on {@code MemorySegment.ofBuffer} makes segments of them. Not thread-safe.
 */
public class TableRow {
    private static final int WORD = Integer.BYTES;

    private Page page;
    private int keyAt;
    private int keyLength;
    private int baseAt;
    private int baseLength;
    private int parts;
    private int end;
    private int part;
    private int partAt;

    TableRow() {
    }

    /** The key, copied. */
    public final byte[] key() {
        return page.copy(keyAt, keyLength);
    }

    /** Where the key lies. */
    public final ByteBuffer keySlice() {
        return page.slice(keyAt, keyLength);
    }

    /** Bytes of the key. */
    public final int keyLength() {
        return keyLength;
    }

    /** Copies the key to an array, which has room for it from {@code index} on. */
    public final void copyKey(byte[] to, int index) {
        check(to, index, keyLength);
        page.copyTo(to, index, keyAt, keyLength);
    }

    /** Whether there is a base: a value that was put, below the parts. */
    public final boolean hasBase() {
        return baseLength >= 0;
    }

    /** The base, copied; null if there is none. */
    public final byte[] base() {
        return hasBase() ? page.copy(baseAt, baseLength) : null;
    }

    /** Where the base lies; null if there is none. */
    public final ByteBuffer baseSlice() {
        return hasBase() ? page.slice(baseAt, baseLength) : null;
    }

    /** Bytes of the base; below 0 if there is none. */
    public final int baseLength() {
        return baseLength;
    }

    /** Copies the base to an array, which has room for it from {@code index} on. */
    public final void copyBase(byte[] to, int index) {
        check(to, index, Math.max(baseLength, 0));
        page.copyTo(to, index, baseAt, Math.max(baseLength, 0));
    }

    /** How many parts there are. */
    public final int parts() {
        return parts;
    }

    /** A part, copied; 0 is the oldest. */
    public final byte[] part(int number) {
        seek(number);
        return page.copy(partAt + WORD, page.word(partAt));
    }

    /** Where a part lies; 0 is the oldest. */
    public final ByteBuffer partSlice(int number) {
        seek(number);
        return page.slice(partAt + WORD, page.word(partAt));
    }

    /** Stands on no row. */
    final void clear() {
        page = null;
    }

    final boolean isSet() {
        return page != null;
    }

    /** Stands on the record at a place of a page; where the next one is. */
    final int setRecord(Page page, int at) {
        int length = page.word(at + WORD);
        setRow(page, at + 2 * WORD + length);
        keyAt = at + 2 * WORD;
        keyLength = length;
        end = at + page.word(at);
        return end;
    }

    /** Stands on the row at a place, whose key is elsewhere on the page. */
    final void setRow(Page page, int at, int keyAt, int keyLength) {
        setRow(page, at);
        this.keyAt = keyAt;
        this.keyLength = keyLength;
    }

    private void setRow(Page page, int at) {
        this.page = page;
        baseLength = page.word(at);
        parts = page.word(at + WORD);
        baseAt = at + 2 * WORD;
        part = 0;
        partAt = baseAt + Math.max(baseLength, 0);
    }

    private void seek(int number) {
        if (number < 0 || number >= parts) {
            throw new IndexOutOfBoundsException(
                    "part " + number + " of a row with " + parts + "; expected one of them");
        }
        if (number < part) {
            part = 0;
            partAt = baseAt + Math.max(baseLength, 0);
        }
        for (; part < number; part++) {
            partAt += WORD + page.word(partAt);
        }
    }

    private static void check(byte[] to, int index, int length) {
        if (index < 0 || length > to.length - index) {
            throw new IndexOutOfBoundsException(length + " bytes to index " + index
                    + " of an array of " + to.length + "; expected room for them");
        }
    }
}
