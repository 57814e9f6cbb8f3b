package io.entresol.examples;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.entresol.MergeFunction;
import io.entresol.OrderedTable;
import io.entresol.Store;
import io.entresol.StoreOptions;
import io.entresol.TableBatch;
import io.entresol.TableCursor;
import io.entresol.TableRange;
import io.entresol.TableRow;
import java.nio.ByteBuffer;
import java.nio.file.Path;

/** Readings of sensors by the time, and how many each sensor gave, in ordered tables. */
public final class Readings implements AutoCloseable {
    private final Store store;
    private final OrderedTable readings;
    private final OrderedTable counts;

    // ANCHOR: open
    /** Opens the readings in a file. */
    public Readings(Path file) {
        store = Store.open(StoreOptions.on(file)
                .capacity(256L << 20)
                .memory(64L << 20)
                .orderedTables(32L << 20)); // bytes of the file for the journal
        readings = store.table("readings");
        counts = store.table("counts");
        counts.merge(Readings::sum); // before parts are added or read
    }
    // ANCHOR_END: open

    // ANCHOR: write
    /** Adds a reading, and counts it: both are durable, or neither is. */
    public void add(String sensor, long time, double reading) {
        try (TableBatch batch = store.batch()) {
            batch.put(readings, key(sensor, time), number(Double.doubleToLongBits(reading)))
                    .add(counts, sensor.getBytes(UTF_8), number(1))
                    .write();
        }
    }

    /** A merge function: the value of a row is the sum of its base and its parts. */
    private static byte[] sum(TableRow row) {
        if (row.parts() == 0) {
            return MergeFunction.KEEP;
        }
        long sum = row.hasBase() ? row.baseSlice().getLong() : 0;
        for (int part = 0; part < row.parts(); part++) {
            sum += row.partSlice(part).getLong();
        }
        return number(sum);
    }
    // ANCHOR_END: write

    // ANCHOR: read
    /** The mean of a sensor's latest readings. */
    public double latest(String sensor, int count) {
        TableRange range = TableRange.startingWith(key(sensor)).descending().limit(count);
        double sum = 0;
        int rows = 0;
        try (TableCursor cursor = readings.scan(range)) {
            for (; cursor.next(); rows++) {
                sum += Double.longBitsToDouble(cursor.baseSlice().getLong()); // no copy
            }
        }
        return rows == 0 ? Double.NaN : sum / rows;
    }

    /** How many readings a sensor has given. */
    public long count(String sensor) {
        byte[] count = counts.get(sensor.getBytes(UTF_8));
        return count == null ? 0 : ByteBuffer.wrap(count).getLong();
    }
    // ANCHOR_END: read

    @Override
    public void close() {
        store.close();
    }

    /** Keys of one sensor are together, since no name has a zero byte; big-endian times ascend. */
    private static byte[] key(String sensor, long time) {
        byte[] prefix = key(sensor);
        return ByteBuffer.allocate(prefix.length + Long.BYTES).put(prefix).putLong(time).array();
    }

    private static byte[] key(String sensor) {
        return (sensor + '\0').getBytes(UTF_8);
    }

    private static byte[] number(long number) {
        return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
    }
}
