package io.entresol.examples;

import com.sun.management.OperatingSystemMXBean;
import io.entresol.Durability;
import io.entresol.OrderedTable;
import io.entresol.Store;
import io.entresol.StoreOptions;
import io.entresol.TableBatch;
import io.entresol.TableCursor;
import io.entresol.TableGets;
import io.entresol.TableRange;
import io.entresol.TableRow;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;

/**
 * Operations of an ordered table in a second, and what of the processor each takes, from one thread
 * and from several: rows of 16 + 100 bytes at random places.
 *
 * <pre>
 * TableSpeed [FOLDER [ROWS [SECONDS [MEMORY-MIB]]]]      (/dev/shm 1000000 2 512)
 * </pre>
 */
public final class TableSpeed {
    private static final int VALUE_BYTES = 100;
    private static final int SCANNED = 100;
    private static final int[] THREADS = {1, 8};

    private final Store store;
    private final OrderedTable table;
    private final long rows;
    private final double seconds;
    private final OperatingSystemMXBean system =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    /** What one thread does again and again. */
    private interface Turn {
        void take(SplittableRandom random, byte[] key, byte[] value);
    }

    private TableSpeed(Store store, long rows, double seconds) {
        this.store = store;
        this.rows = rows;
        this.seconds = seconds;
        table = store.table("speed");
    }

    /** What the command line asks for. */
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments.length > 0 ? arguments[0] : "/dev/shm");
        long rows = arguments.length > 1 ? Long.parseLong(arguments[1]) : 1_000_000;
        double seconds = arguments.length > 2 ? Double.parseDouble(arguments[2]) : 2;
        long memory = arguments.length > 3 ? Long.parseLong(arguments[3]) : 512;
        Path file = Files.createTempDirectory(folder, "entresol-speed").resolve("data");
        long capacity = Math.max(256L << 20, rows * 116 * 3);
        StoreOptions options = StoreOptions.on(file).capacity(capacity).memory(memory << 20)
                .durability(Durability.MEMORY).orderedTables(64 << 20)
                .waitingChanges(Math.max(4 << 20, rows * 116 / 20));
        try (Store store = Store.open(options)) {
            new TableSpeed(store, rows, seconds).run();
        } finally {
            delete(file);
        }
    }

    private static void delete(Path file) throws IOException {
        Files.deleteIfExists(file);
        Files.delete(file.getParent());
    }

    private void run() throws InterruptedException {
        System.out.println("Java " + Runtime.version().feature() + ", " + rows + " rows of 16 + "
                + VALUE_BYTES + " bytes");
        load();
        print("nothing but keys and random numbers", this::nothing);
        print("get, copied", this::get);
        print("get, read where it lies", this::read);
        print("two gets, read where they lie", this::readTwo);
        print("two gets by one call, the same", this::readTwoAtOnce);
        print("scan of " + SCANNED + ", read where it lies", this::scan);
        print("put", this::put);
        print("put, 16 in a batch", this::putSixteen);
    }

    private void load() {
        SplittableRandom random = new SplittableRandom(1);
        byte[] key = new byte[16];
        byte[] value = new byte[VALUE_BYTES];
        try (TableBatch batch = store.batch()) {
            for (long row = 0; row < rows; row++) {
                random.nextBytes(value);
                batch.put(table, keyOf(row, key), value);
                if (row % 64 == 63 || row == rows - 1) {
                    batch.write();
                    batch.clear();
                }
            }
        }
        store.sync();
    }

    private void nothing(SplittableRandom random, byte[] key, byte[] value) {
        value[0] ^= keyOf(random.nextLong(rows), key)[15];
    }

    private void get(SplittableRandom random, byte[] key, byte[] value) {
        value[0] ^= table.get(keyOf(random.nextLong(rows), key))[0];
    }

    private void read(SplittableRandom random, byte[] key, byte[] value) {
        value[0] ^= table.read(keyOf(random.nextLong(rows), key), TableRow::baseLength);
    }

    private void readTwo(SplittableRandom random, byte[] key, byte[] value) {
        read(random, key, value);
        read(random, key, value);
    }

    private void readTwoAtOnce(SplittableRandom random, byte[] key, byte[] value) {
        try (TableGets gets = store.gets()) {
            gets.add(table, keyOf(random.nextLong(rows), key));
            gets.add(table, keyOf(random.nextLong(rows), key)).read();
            value[0] ^= gets.row(0).baseLength() + gets.row(1).baseLength();
        }
    }

    private void scan(SplittableRandom random, byte[] key, byte[] value) {
        TableRange range =
                TableRange.ALL.from(keyOf(random.nextLong(rows), key)).limit(SCANNED);
        try (TableCursor cursor = table.scanUnfolded(range)) {
            while (cursor.next()) {
                value[0] ^= cursor.baseLength() + cursor.keyLength();
            }
        }
    }

    private void put(SplittableRandom random, byte[] key, byte[] value) {
        table.put(keyOf(random.nextLong(rows), key), value);
    }

    private void putSixteen(SplittableRandom random, byte[] key, byte[] value) {
        try (TableBatch batch = store.batch()) {
            for (int row = 0; row < 16; row++) {
                batch.put(table, keyOf(random.nextLong(rows), key), value);
            }
            batch.write();
        }
    }

    private void print(String what, Turn turn) throws InterruptedException {
        // The compiler has seen all of it then.
        measure(1, turn, seconds / 2);
        for (int threads : THREADS) {
            System.out.printf("%-40s %d threads: %s%n", what, threads,
                    measure(threads, turn, seconds));
        }
    }

    private String measure(int count, Turn turn, double seconds) throws InterruptedException {
        AtomicBoolean over = new AtomicBoolean();
        LongAdder turns = new LongAdder();
        List<Thread> threads = new ArrayList<>();
        long processor = system.getProcessCpuTime();
        long begun = System.nanoTime();
        for (int thread = 0; thread < count; thread++) {
            SplittableRandom random = new SplittableRandom(thread);
            threads.add(new Thread(() -> {
                byte[] key = new byte[16];
                byte[] value = new byte[VALUE_BYTES];
                random.nextBytes(value);
                while (!over.get()) {
                    turn.take(random, key, value);
                    turns.increment();
                }
            }));
        }
        threads.forEach(Thread::start);
        Thread.sleep((long) (seconds * 1000));
        over.set(true);
        for (Thread thread : threads) {
            thread.join();
        }
        double taken = (System.nanoTime() - begun) / 1e9;
        double micros = (system.getProcessCpuTime() - processor) / 1e3 / turns.sum();
        return String.format("%,12.0f/s, %.2f us of the processor", turns.sum() / taken, micros);
    }

    /** Keys in no order, all different: the finaliser of SplitMix64 is a permutation. */
    private static byte[] keyOf(long number, byte[] key) {
        long v = number + 1;
        v = (v ^ v >>> 30) * 0xBF58476D1CE4E5B9L;
        v = (v ^ v >>> 27) * 0x94D049BB133111EBL;
        ByteBuffer.wrap(key).putLong(v ^ v >>> 31).putLong(number);
        return key;
    }
}
