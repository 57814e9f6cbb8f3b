package io.entresol.cassandra;

import io.entresol.Durability;
import io.entresol.OrderedTable;
import io.entresol.Store;
import io.entresol.TableBatch;
import io.entresol.TableCursor;
import io.entresol.TableRange;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.utils.ByteBufferUtil;

/**
 * What a store knows of the Cassandra tables in it: their generations, and the layouts of their
 * values. It is an ordered table itself. A change is synced when the call returns. Thread-safe.
 */
final class Catalog {
    /** The name of the ordered table. */
    static final String NAME = "cassandra";
    private static final byte GENERATION = 'g';
    private static final byte LAYOUT = 'l';
    private static final byte TEMPORARY = 't';
    private static final byte VERSION = 1;
    /** Of a generation with a time behind the rest. */
    private static final byte TIMED = 2;
    /** Of a generation none of whose partitions has a head. */
    private static final byte HEADLESS = 3;

    /** What becomes of a generation. */
    enum State {
        /** The table's rows. */
        LIVE,
        /** Its rows go. */
        DROPPING,
        /** Its rows are written to SSTables, and go then. */
        FLUSHING
    }

    /**
     * The rows of a table from one truncation to the next.
     *
     * @param leastTimestamp no cell or deletion has a lower timestamp
     * @param since when a flush was asked for, in milliseconds since 1970; 0 in other states
     * @param hasHeads whether partitions may have heads
     */
    record Generation(TableName table, long number, State state, long leastTimestamp, long since,
            boolean hasHeads) {
        static Generation first(TableName table, long number) {
            return new Generation(table, number, State.LIVE, Long.MAX_VALUE, 0, false);
        }

        String ordered() {
            return table.ordered(number);
        }

        Generation in(State other) {
            return new Generation(table, number, other, leastTimestamp, 0, hasHeads);
        }

        Generation flushing(long now) {
            return new Generation(table, number, State.FLUSHING, leastTimestamp, now, hasHeads);
        }

        Generation withLeast(long timestamp) {
            return new Generation(table, number, state, timestamp, since, hasHeads);
        }

        Generation withHeads() {
            return new Generation(table, number, state, leastTimestamp, since, true);
        }
    }

    private final Store store;
    private final OrderedTable table;

    Catalog(Store store) {
        this.store = store;
        table = store.table(NAME);
    }

    /** All generations, those of a table in the order of their numbers. */
    List<Generation> generations() {
        return generations(TableRange.startingWith(new byte[] {GENERATION}));
    }

    /** The generations of a table, in the order of their numbers. */
    List<Generation> generations(TableName name) {
        List<Generation> all = generations(TableRange.startingWith(key(GENERATION, name)));
        all.removeIf(one -> !one.table.equals(name));
        return all;
    }

    /** The newest generation of a table. */
    Optional<Generation> newest(TableName name) {
        List<Generation> all = generations(name);
        return all.isEmpty() ? Optional.empty() : Optional.of(all.get(all.size() - 1));
    }

    /** Records a generation as it is from now on. */
    void put(Generation generation) {
        try (TableBatch batch = store.batch()) {
            add(batch, generation).write(Durability.SYNCED);
        }
    }

    /** Has a batch record a generation. */
    TableBatch add(TableBatch batch, Generation generation) {
        byte[] value = written(out -> {
            boolean isTimed = generation.state == State.FLUSHING;
            // Whether a flushing one has heads no longer matters.
            out.writeByte(isTimed ? TIMED : generation.hasHeads ? VERSION : HEADLESS);
            out.writeByte(generation.state.ordinal());
            out.writeLong(generation.leastTimestamp);
            if (isTimed) {
                out.writeLong(generation.since);
            }
        });
        return batch.put(table, key(generation), value);
    }

    /** Forgets a generation, whose rows are gone. */
    void remove(Generation generation) {
        try (TableBatch batch = store.batch()) {
            batch.remove(table, key(generation)).write(Durability.SYNCED);
        }
    }

    /** The layouts of a table, in the order of their numbers. */
    List<List<Layouts.Column>> layouts(TableName name) {
        List<List<Layouts.Column>> all = new ArrayList<>();
        try (TableCursor rows = table.scan(TableRange.startingWith(key(LAYOUT, name)))) {
            while (rows.next()) {
                byte[] key = rows.key();
                if (TableName.of(name(key, Integer.BYTES)).equals(name)) {
                    all.add(read(rows.value(), in -> columns(in)));
                }
            }
        }
        return all;
    }

    /** Records a layout. */
    void addLayout(TableName name, int number, List<Layouts.Column> columns) {
        byte[] prefix = key(LAYOUT, name);
        ByteBuffer key = ByteBuffer.allocate(prefix.length + Integer.BYTES).put(prefix);
        byte[] value = written(out -> {
            out.writeByte(VERSION);
            out.writeInt(columns.size());
            for (Layouts.Column column : columns) {
                out.writeBoolean(column.isStatic());
                ByteBufferUtil.writeWithShortLength(column.name(), out);
            }
        });
        try (TableBatch batch = store.batch()) {
            batch.put(table, key.putInt(number).array(), value).write(Durability.SYNCED);
        }
    }

    /** Records an SSTable of a table that is to be removed; the start of its files' names. */
    void addTemporary(TableName name, String base) {
        try (TableBatch batch = store.batch()) {
            batch.put(table, temporary(name, base), new byte[] {VERSION}).write(Durability.SYNCED);
        }
    }

    /** Forgets an SSTable that was removed. */
    void removeTemporary(TableName name, String base) {
        try (TableBatch batch = store.batch()) {
            batch.remove(table, temporary(name, base)).write(Durability.SYNCED);
        }
    }

    /** The SSTables of a table that are to be removed. */
    List<String> temporaries(TableName name) {
        List<String> all = new ArrayList<>();
        byte[] prefix = temporary(name, "");
        try (TableCursor rows = table.scan(TableRange.startingWith(prefix))) {
            while (rows.next()) {
                byte[] key = rows.key();
                all.add(new String(key, prefix.length, key.length - prefix.length,
                        StandardCharsets.UTF_8));
            }
        }
        return all;
    }

    private static byte[] temporary(TableName name, String base) {
        // No name of an index has this byte, which ends it.
        byte[] prefix = key(TEMPORARY, name);
        byte[] path = base.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(prefix.length + 1 + path.length).put(prefix).put((byte) 0)
                .put(path).array();
    }

    private List<Generation> generations(TableRange range) {
        List<Generation> all = new ArrayList<>();
        try (TableCursor rows = table.scan(range)) {
            while (rows.next()) {
                byte[] key = rows.key();
                TableName name = TableName.of(name(key, Long.BYTES));
                long number = ByteBuffer.wrap(key).getLong(key.length - Long.BYTES);
                byte[] value = rows.value();
                all.add(read(value, in -> new Generation(name, number,
                        State.values()[in.readByte()], in.readLong(),
                        value[0] == TIMED ? in.readLong() : 0, value[0] != HEADLESS)));
            }
        }
        return all;
    }

    private static List<Layouts.Column> columns(DataInputBuffer in) throws IOException {
        List<Layouts.Column> columns = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            boolean isStatic = in.readBoolean();
            columns.add(new Layouts.Column(ByteBufferUtil.readWithShortLength(in), isStatic));
        }
        return columns;
    }

    private static byte[] key(byte kind, TableName name) {
        byte[] bytes = name.bytes();
        return ByteBuffer.allocate(1 + bytes.length).put(kind).put(bytes).array();
    }

    private static byte[] key(Generation generation) {
        byte[] prefix = key(GENERATION, generation.table);
        return ByteBuffer.allocate(prefix.length + Long.BYTES).put(prefix)
                .putLong(generation.number).array();
    }

    /** The table's name between the kind and a number. */
    private static ByteBuffer name(byte[] key, int numberBytes) {
        return ByteBuffer.wrap(key, 1, key.length - 1 - numberBytes).slice();
    }

    private interface Writes {
        void to(DataOutputBuffer out) throws IOException;
    }

    private interface Reads<T> {
        T from(DataInputBuffer in) throws IOException;
    }

    private static byte[] written(Writes writes) {
        try (DataOutputBuffer out = new DataOutputBuffer()) {
            writes.to(out);
            return out.toByteArray();
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    private static <T> T read(byte[] value, Reads<T> reads) {
        try (DataInputBuffer in = new DataInputBuffer(value)) {
            int version = in.readByte();
            if (version < VERSION || version > HEADLESS) {
                throw new DamagedRow("a record of the catalog has version " + version
                        + "; expected " + VERSION + " to " + HEADLESS);
            }
            return reads.from(in);
        } catch (IOException | IndexOutOfBoundsException cut) {
            throw new DamagedRow("a record of the catalog ends too early, after "
                    + value.length + " bytes", cut);
        }
    }
}
