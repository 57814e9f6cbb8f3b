package io.entresol;

import io.entresol.Pages.Page;
import io.entresol.heap.engine.NativeTables;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.Function;

/**
 * Rows in the order of their keys, under one name in a {@link Store} that was opened with
 * {@link StoreOptions#orderedTables}. A key has 1 byte to 2 KiB, and is compared as bytes without a
 * sign. A store has as many tables as one likes, which come into being with their first row.
 *
 * <p>Thread-safe: many threads call at once, each call works and waits for the device in its thread,
 * and writers that wait for a sync share it. 32 calls of a store work at a time, others wait for
 * their turn. A virtual thread keeps its carrier meanwhile. Writes that find too much waiting for
 * merges do some of them first. Closing the store waits for calls under way; later ones fail with
 * {@link StoreException.Kind#POISONED}.
 *
 * <p>Reads see all that was acknowledged before they began. A batch is durable as a whole; readers
 * see its rows one by one, but for scans of a range {@link TableRange#atOneMoment}.
 */
public final class OrderedTable {
    /** Of a page: what goes before the record. */
    private static final int WORDS_BYTES = 5 * Long.BYTES;

    final Tables tables;
    final long address;
    private final byte[] name;
    private final String key;

    OrderedTable(Tables tables, byte[] name, long address) {
        this.tables = tables;
        this.address = address;
        this.name = name.clone();
        key = Tables.key(name);
        Pages.CLEANER.register(this, () -> NativeTables.tableClose(address));
    }

    /** The name. */
    public byte[] name() {
        return name.clone();
    }

    /** The value of a row, parts folded in; null if there is none. */
    public byte[] get(byte[] key) {
        Page page = tables.pages.take(key.length);
        page.set(0, key);
        return read(page, key.length, this::value);
    }

    /** The same, of the key that remains in a buffer, whose position stays. */
    public byte[] get(ByteBuffer key) {
        Page page = tables.pages.take(key.remaining());
        page.set(0, key);
        return read(page, key.remaining(), this::value);
    }

    /**
     * The values of the rows of several keys, in their order, parts folded in; null where there is
     * none. All are read by one call, side by side; {@link Store#gets} does so without copies, and
     * with rows of several tables.
     */
    public List<byte[]> getAll(List<byte[]> keys) {
        try (TableGets gets = new TableGets(tables)) {
            for (byte[] key : keys) {
                gets.add(this, key);
            }
            gets.read();
            List<byte[]> values = new ArrayList<>(keys.size());
            for (int index = 0; index < gets.size(); index++) {
                values.add(gets.value(index));
            }
            return values;
        }
    }

    /**
     * What a reader makes of a row as it lies in memory, unfolded; null if there is none. The row is
     * valid until the reader returns.
     */
    public <T> T read(byte[] key, Function<? super TableRow, T> reader) {
        Page page = tables.pages.take(key.length);
        page.set(0, key);
        return read(page, key.length, reader);
    }

    /** The same, of the key that remains in a buffer, whose position stays. */
    public <T> T read(ByteBuffer key, Function<? super TableRow, T> reader) {
        Page page = tables.pages.take(key.remaining());
        page.set(0, key);
        return read(page, key.remaining(), reader);
    }

    /** Puts a row, acknowledged at the store's durability. */
    public void put(byte[] key, byte[] value) {
        write(TableBatch.PUT, ByteBuffer.wrap(key), ByteBuffer.wrap(value));
    }

    /** Puts what remains of a buffer; the same. */
    public void put(ByteBuffer key, ByteBuffer value) {
        write(TableBatch.PUT, key, value);
    }

    /** Removes a row, if there is one; the same. */
    public void remove(byte[] key) {
        write(TableBatch.REMOVE, ByteBuffer.wrap(key), TableBatch.NOTHING);
    }

    /** Adds a part to a row, which is made if there is none; the same. */
    public void add(byte[] key, byte[] part) {
        write(TableBatch.ADD, ByteBuffer.wrap(key), ByteBuffer.wrap(part));
    }

    /** Adds what remains of a buffer as a part; the same. */
    public void add(ByteBuffer key, ByteBuffer part) {
        write(TableBatch.ADD, key, part);
    }

    /** The rows of a range, parts folded in. */
    public TableCursor scan(TableRange range) {
        return new TableCursor(this, range, true, TableCursor.BY_KEY);
    }

    /** The rows of a range as they lie in memory, for readers that fold themselves. */
    public TableCursor scanUnfolded(TableRange range) {
        return new TableCursor(this, range, false, TableCursor.BY_KEY);
    }

    /**
     * How many rows there are within the bounds of a range, exactly, if the table keeps counts. Rows
     * that others write meanwhile are counted or not. Few leaves are read: those with changes since
     * the last count, those at the bounds, and after a crash each one once. A row that its merge
     * function ends as time passes counts until its leaf is written anew.
     *
     * @throws StoreException of kind {@link StoreException.Kind#INVALID}, if it keeps no counts
     */
    public long count(TableRange range) {
        return count(range.low, range.high == null ? new byte[0] : range.high);
    }

    /**
     * About how many rows there are within the bounds of a range, of any table, whether it keeps
     * counts or not. It reads nothing: what is in memory says how many rows leaves had when they
     * were written, and how many changes came since.
     */
    public RowEstimate estimate(TableRange range) {
        tables.check();
        byte[] high = range.high == null ? new byte[0] : range.high;
        if (range.high != null && high.length == 0) {
            return new RowEstimate(0, OptionalLong.of(0));
        }
        Page page = tables.pages.take(WORDS_BYTES + (long) range.low.length + high.length + 1);
        int end = page.set(WORDS_BYTES, range.low);
        page.set(end, high);
        page.setLong(0, page.address(WORDS_BYTES));
        page.setLong(Long.BYTES, range.low.length);
        page.setLong(2 * Long.BYTES, page.address(end));
        page.setLong(3 * Long.BYTES, high.length);
        try {
            long rows = StoreException.checked(
                    NativeTables.tableEstimate(address, page.address(0)));
            long error = page.longWord(4 * Long.BYTES);
            return new RowEstimate(rows,
                    error == -1 ? OptionalLong.empty() : OptionalLong.of(error));
        } finally {
            tables.pages.give(page);
            Reference.reachabilityFence(this);
        }
    }

    /** How many rows are below a key, whether it has a row or not; as {@link #count}. */
    public long rank(byte[] key) {
        return count(new byte[0], key);
    }

    /** The key that has so many rows below it; null if there are not so many. */
    public byte[] at(long rank) {
        try (TableCursor cursor = scanFrom(rank, TableRange.ALL.limit(1))) {
            return cursor.next() ? cursor.key() : null;
        }
    }

    /**
     * The rows from the one on that has {@code rank} rows below it, upwards or downwards as the range
     * says, which has no bounds and is not of one moment. The table keeps counts.
     *
     * @throws IllegalArgumentException if the rank is negative, or the range has bounds or is
     *         {@link TableRange#atOneMoment}
     */
    public TableCursor scanFrom(long rank, TableRange range) {
        if (rank < 0) {
            throw new IllegalArgumentException("a rank of " + rank + "; expected 0 or more");
        }
        if (range.low.length > 0 || range.high != null) {
            throw new IllegalArgumentException("a range with bounds; expected one without, since"
                    + " a rank says where it begins");
        }
        if (range.isOfMoments) {
            throw new IllegalArgumentException("a range of one moment; expected another one, since"
                    + " ranks are counted leaf by leaf");
        }
        return new TableCursor(this, range, true, rank);
    }

    /** Removes all rows: at once for who reads later, durable on return. */
    public void drop() {
        tables.check();
        try {
            StoreException.checked(NativeTables.tableDrop(address));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Gives the table, by its name, the function that folds its parts, for as long as the store is
     * open. Until it has one, parts wait in memory and in the journal: give it before anything else.
     */
    public void merge(MergeFunction function) {
        try {
            tables.setFunction(this, key, address, function);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The name as text, if it is some. */
    @Override
    public String toString() {
        return "ordered table `" + new String(name, StandardCharsets.UTF_8) + "`";
    }

    /** Reads a page of a scan; how many rows. */
    long scan(ScanRequest request) {
        tables.check();
        try {
            return StoreException.checked(NativeTables.tableScan(address, request.address()));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private long count(byte[] low, byte[] high) {
        tables.check();
        Page page = tables.pages.take((long) low.length + high.length + 1);
        int end = page.set(0, low);
        page.set(end, high);
        try {
            return StoreException.checked(NativeTables.tableCount(
                    address, page.address(0), low.length, page.address(end), high.length));
        } finally {
            tables.pages.give(page);
            Reference.reachabilityFence(this);
        }
    }

    /** What a row comes to: {@link MergeFunction#KEEP}, a value, or null where it is no more. */
    byte[] fold(TableRow row) {
        MergeFunction function = tables.function(key);
        if (row.parts() == 0 && (function == null || !function.foldsAllRows())) {
            return MergeFunction.KEEP;
        }
        if (function == null) {
            throw new StoreException(StoreException.Kind.INVALID, this + " has rows with parts;"
                    + " expected that it was given its merge function");
        }
        byte[] folded = function.fold(row);
        return folded == MergeFunction.KEEP && !row.hasBase() ? null : folded;
    }

    /** The value of a row, parts folded in. */
    byte[] value(TableRow row) {
        byte[] folded = fold(row);
        return folded == MergeFunction.KEEP ? row.base() : folded;
    }

    /** Reads the row of the key that a page begins with; gives the page back. */
    private <T> T read(Page page, int keyLength, Function<? super TableRow, T> reader) {
        tables.check();
        Page holder = page;
        long found = read(holder, keyLength);
        while (found > holder.bytes() - keyLength) {
            Page larger = tables.pages.take(keyLength + found + 64);
            larger.set(0, holder.address(0), keyLength);
            tables.pages.give(holder);
            holder = larger;
            found = read(holder, keyLength);
        }
        T made = null;
        if (found > 0) {
            TableRow row = new TableRow();
            row.setRow(holder, keyLength, 0, keyLength);
            made = reader.apply(row);
        }
        tables.pages.give(holder);
        return made;
    }

    /** Reads the row behind its key, if it has room there; how many bytes it has. */
    private long read(Page page, int at) {
        try {
            return StoreException.checked(NativeTables.tableGet(
                    address, page.address(0), at, page.address(at), page.bytes() - at));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private void write(int kind, ByteBuffer key, ByteBuffer value) {
        long bytes = (long) WORDS_BYTES + TableBatch.HEAD_BYTES + key.remaining()
                + value.remaining();
        Page page = tables.pages.take(bytes);
        TableBatch.Record record = new TableBatch.Record(kind, key, value);
        int end = TableBatch.append(page, WORDS_BYTES, this, record);
        try {
            tables.write(page, page.address(WORDS_BYTES), end - WORDS_BYTES, null);
        } finally {
            Reference.reachabilityFence(this);
        }
        tables.pages.give(page);
    }
}
