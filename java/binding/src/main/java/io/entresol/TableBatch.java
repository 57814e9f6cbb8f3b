package io.entresol;

import io.entresol.Pages.Page;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Changes of rows in one or several {@link OrderedTable}s of a store that become durable together,
 * in their order, and only if all conditions hold. They are gathered in native memory and written by
 * one call. A batch has up to half of a segment of the store, 512 KiB if nobody said otherwise. It
 * may be written again, or emptied and used for others; closing it gives its memory to the next one.
 * For one thread at a time.
 */
public final class TableBatch implements AutoCloseable {
    static final int PUT = 1;
    static final int REMOVE = 2;
    static final int ADD = 3;
    static final int HEAD_BYTES = 24;
    static final ByteBuffer NOTHING = ByteBuffer.allocate(0);
    private static final int ABSENT = 4;
    private static final int PRESENT = 5;
    private static final int VALUE = 6;
    private static final int WORDS_BYTES = 5 * Long.BYTES;

    private final Tables tables;
    private Page page;
    private int end = WORDS_BYTES;
    /** Tables that records name, so that their addresses stay. */
    private final List<OrderedTable> named = new ArrayList<>();
    private OrderedTable last;
    private int refused = -1;

    /** A change or a condition. */
    record Record(int kind, ByteBuffer key, ByteBuffer value) {
    }

    TableBatch(Tables tables) {
        this.tables = tables;
        page = tables.pages.take(Pages.BYTES);
    }

    /** The row has this value from then on. */
    public TableBatch put(OrderedTable table, byte[] key, byte[] value) {
        return append(table, PUT, ByteBuffer.wrap(key), ByteBuffer.wrap(value));
    }

    /** The same, with what remains of buffers, whose positions stay. */
    public TableBatch put(OrderedTable table, ByteBuffer key, ByteBuffer value) {
        return append(table, PUT, key, value);
    }

    /** There is no such row from then on. */
    public TableBatch remove(OrderedTable table, byte[] key) {
        return append(table, REMOVE, ByteBuffer.wrap(key), NOTHING);
    }

    /** The same, with what remains of a buffer. */
    public TableBatch remove(OrderedTable table, ByteBuffer key) {
        return append(table, REMOVE, key, NOTHING);
    }

    /** Adds a part to the row. */
    public TableBatch add(OrderedTable table, byte[] key, byte[] part) {
        return append(table, ADD, ByteBuffer.wrap(key), ByteBuffer.wrap(part));
    }

    /** The same, with what remains of buffers. */
    public TableBatch add(OrderedTable table, ByteBuffer key, ByteBuffer part) {
        return append(table, ADD, key, part);
    }

    /** Condition: there is no such row before the batch. */
    public TableBatch ifAbsent(OrderedTable table, byte[] key) {
        return append(table, ABSENT, ByteBuffer.wrap(key), NOTHING);
    }

    /** Condition: there is such a row before the batch. */
    public TableBatch ifPresent(OrderedTable table, byte[] key) {
        return append(table, PRESENT, ByteBuffer.wrap(key), NOTHING);
    }

    /** Condition: the row has this value before the batch, parts folded in. */
    public TableBatch ifValue(OrderedTable table, byte[] key, byte[] value) {
        return append(table, VALUE, ByteBuffer.wrap(key), ByteBuffer.wrap(value));
    }

    /** Writes the batch at the store's durability; whether all conditions hold, so that it did. */
    public boolean write() {
        return write(null);
    }

    /** Writes the batch; on return it is so durable. Whether all conditions hold, so that it did. */
    public boolean write(Durability level) {
        try {
            long written = tables.write(page, page.address(WORDS_BYTES), end - WORDS_BYTES, level);
            refused = (int) written;
            return refused < 0;
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The condition that did not hold when it was written last, from 0 on; -1 if all did. */
    public int refused() {
        return refused;
    }

    /** Bytes of changes and conditions, 24 for each beside its key and value. */
    public int bytes() {
        return end - WORDS_BYTES;
    }

    /** Has no changes and conditions any more. */
    public TableBatch clear() {
        end = WORDS_BYTES;
        named.clear();
        last = null;
        refused = -1;
        return this;
    }

    /** Gives the memory back; the batch must not be used any more. */
    @Override
    public void close() {
        if (page != null) {
            tables.pages.give(page);
            page = null;
        }
    }

    /** Puts a record to a page; where it ends. */
    static int append(Page page, int at, OrderedTable table, Record record) {
        page.setLong(at, table.address);
        page.setWord(at + 8, record.kind);
        page.setWord(at + 12, record.key.remaining());
        page.setWord(at + 16, record.value.remaining());
        page.setWord(at + 20, 0);
        return page.set(page.set(at + HEAD_BYTES, record.key), record.value);
    }

    private TableBatch append(OrderedTable table, int kind, ByteBuffer key, ByteBuffer value) {
        if (table.tables != tables) {
            throw new IllegalArgumentException(table + " is one of another store's");
        }
        long needed = (long) end + HEAD_BYTES + key.remaining() + value.remaining();
        if (needed > page.bytes()) {
            Page larger = tables.pages.take(Math.max(needed, Math.min(2L * page.bytes(), 1 << 30)));
            larger.set(0, page.address(0), end);
            page = larger;
        }
        end = append(page, end, table, new Record(kind, key, value));
        if (table != last) {
            last = table;
            named.add(table);
        }
        return this;
    }
}
