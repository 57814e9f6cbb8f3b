package io.entresol;

import io.entresol.Pages.Page;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Gets of several rows in one or several {@link OrderedTable}s of a store, which are read by one
 * call into the library, side by side. Keys are gathered in native memory, and the rows come there:
 * they can be read where they lie. Each row is as it is when it is read, as with single gets. Gets
 * may be read again, or emptied and used for others; closing them gives their memory to the next
 * ones. For one thread at a time.
 */
public final class TableGets implements AutoCloseable {
    private static final int WORDS_BYTES = 5 * Long.BYTES;
    /** Of a key: what goes before it. */
    private static final int HEAD_BYTES = 16;
    private static final int WORD = Integer.BYTES;

    private final Tables tables;
    private Page page;
    /** Where the keys end, behind which the answers are. */
    private int end = WORDS_BYTES;
    /** The table of each key, so that its address stays. */
    private final List<OrderedTable> named = new ArrayList<>();
    /** Where each key is, and its answer. */
    private int[] keys = new int[8];
    private int[] answers = new int[8];
    private boolean isRead;

    TableGets(Tables tables) {
        this.tables = tables;
        page = tables.pages.take(Pages.BYTES);
    }

    /** Asks for a row. Those that were read before are valid no more. */
    public TableGets add(OrderedTable table, byte[] key) {
        return append(table, ByteBuffer.wrap(key));
    }

    /** The same, of the key that remains in a buffer, whose position stays. */
    public TableGets add(OrderedTable table, ByteBuffer key) {
        return append(table, key);
    }

    /** How many rows are asked for. */
    public int size() {
        return named.size();
    }

    /** Reads all rows; how many of them there are. */
    public int read() {
        isRead = false;
        if (named.isEmpty()) {
            return 0;
        }
        long found = call();
        for (long needed = needed(); needed > page.bytes(); needed = needed()) {
            // Again where rows grew meanwhile.
            makeRoom(needed + 64);
            found = call();
        }
        int at = end;
        for (int index = 0; index < named.size(); index++) {
            answers[index] = at;
            at += WORD + page.word(at);
        }
        isRead = true;
        return (int) found;
    }

    /**
     * The row of the key that was added as number {@code index}, from 0 on, unfolded; null if there
     * is none. Valid until a key is added, or rows are read again, or these gets are emptied or
     * closed.
     *
     * @throws IllegalStateException if keys were added since the last {@link #read}
     */
    public TableRow row(int index) {
        if (!isRead) {
            throw new IllegalStateException("rows that are not read; expected a call of read");
        }
        if (index < 0 || index >= named.size()) {
            throw new IndexOutOfBoundsException(
                    "row " + index + " of " + named.size() + "; expected one of them");
        }
        int at = answers[index];
        if (page.word(at) == 0) {
            return null;
        }
        TableRow row = new TableRow();
        row.setRow(page, at + WORD, keys[index] + HEAD_BYTES, page.word(keys[index] + 8));
        return row;
    }

    /** The value of that row, parts folded in, copied; null if there is none. */
    public byte[] value(int index) {
        TableRow row = row(index);
        return row == null ? null : named.get(index).value(row);
    }

    /** Asks for no rows any more. */
    public TableGets clear() {
        end = WORDS_BYTES;
        named.clear();
        isRead = false;
        return this;
    }

    /** Gives the memory back; the gets and their rows must not be used any more. */
    @Override
    public void close() {
        isRead = false;
        if (page != null) {
            tables.pages.give(page);
            page = null;
        }
    }

    private TableGets append(OrderedTable table, ByteBuffer key) {
        if (table.tables != tables) {
            throw new IllegalArgumentException(table + " is one of another store's");
        }
        isRead = false;
        long needed = (long) end + HEAD_BYTES + key.remaining();
        if (needed > page.bytes()) {
            makeRoom(Math.max(needed, Math.min(2L * page.bytes(), 1 << 30)));
        }
        int index = named.size();
        if (index == keys.length) {
            keys = Arrays.copyOf(keys, 2 * index);
            answers = Arrays.copyOf(answers, 2 * index);
        }
        keys[index] = end;
        page.setLong(end, table.address);
        page.setWord(end + 8, key.remaining());
        page.setWord(end + 12, 0);
        end = page.set(end + HEAD_BYTES, key);
        named.add(table);
        return this;
    }

    /** Moves the keys to a page of so many bytes. */
    private void makeRoom(long bytes) {
        Page larger = tables.pages.take(bytes);
        larger.set(0, page.address(0), end);
        tables.pages.give(page);
        page = larger;
    }

    /** Bytes of a page with room for the answers to the last call. */
    private long needed() {
        return end + page.longWord(4 * Long.BYTES);
    }

    private long call() {
        page.setLong(0, page.address(WORDS_BYTES));
        page.setLong(Long.BYTES, end - WORDS_BYTES);
        page.setLong(2 * Long.BYTES, page.address(end));
        page.setLong(3 * Long.BYTES, page.bytes() - end);
        page.setLong(4 * Long.BYTES, 0);
        try {
            return tables.get(page.address(0));
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
