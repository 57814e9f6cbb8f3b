package io.entresol;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A JVM whose threads write batches over two tables is killed again and again, at a place that a
 * seed chooses ({@code entresol.seed}, printed). No batch that was acknowledged is missing, and each
 * is there in both tables or in none; sums of parts are those of the batches.
 */
class TableKillTest {
    private static final int ROUNDS = Integer.getInteger("entresol.kill.rounds", 5);
    private static final long SEED = Long.getLong("entresol.seed", 42);
    private static final int THREADS = 4;

    @TempDir
    Path folder;

    @AfterEach
    void removeBuffers() throws IOException {
        KilledStores.removeBuffers(folder);
    }

    @Test
    void acknowledgedBatchesSurviveTheDeathOfTheProcessAsAWhole() throws Exception {
        System.out.println("kills: " + ROUNDS + " rounds, -Dentresol.seed=" + SEED);
        Random random = new Random(SEED);
        long[] acknowledged = new long[THREADS];
        for (int round = 0; round < ROUNDS; round++) {
            runAndKill(200 + random.nextInt(3000), acknowledged);
            check(acknowledged, round);
        }
    }

    private void check(long[] acknowledged, int round) {
        try (Store store = Store.open(options(folder.toString()))) {
            OrderedTable rows = store.table("rows");
            OrderedTable sums = store.table("sums");
            sums.merge(TableKillTest::add);
            for (int thread = 0; thread < THREADS; thread++) {
                TableRange own = TableRange.startingWith(new byte[] {(byte) thread});
                long count = 0;
                try (TableCursor cursor = rows.scan(own)) {
                    for (; cursor.next(); count++) {
                        assertArrayEquals(key(thread, count), cursor.key());
                        assertArrayEquals(value(thread, count), cursor.value());
                    }
                }
                String where = "round " + round + ", thread " + thread + ": " + count + " of "
                        + acknowledged[thread];
                assertTrue(count >= acknowledged[thread], where);
                assertTrue(count <= acknowledged[thread] + 2, where);
                byte[] sum = sums.get(new byte[] {(byte) thread});
                assertEquals(count, sum == null ? 0 : ByteBuffer.wrap(sum).getLong(), where);
                acknowledged[thread] = count;
            }
        }
    }

    /** Lets a child go on until it has said so much, and kills it. */
    private void runAndKill(int after, long[] acknowledged) throws Exception {
        Process child = ChildJvm.start(List.of(), Child.class, folder.toString());
        try (BufferedReader lines = new BufferedReader(
                new InputStreamReader(child.getInputStream(), StandardCharsets.US_ASCII))) {
            for (int line = 0; line < after; line++) {
                take(lines.readLine(), acknowledged);
            }
            child.toHandle().destroyForcibly();
            // What it said before it died counts too.
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.endsWith(".")) {
                    take(line, acknowledged);
                }
            }
        }
        child.waitFor();
    }

    private static void take(String line, long[] acknowledged) {
        String[] said = line.split("[ .]");
        acknowledged[Integer.parseInt(said[0])] = Long.parseLong(said[1]);
    }

    private static byte[] add(TableRow row) {
        long sum = row.hasBase() ? row.baseSlice().getLong() : 0;
        for (int part = 0; part < row.parts(); part++) {
            sum += row.partSlice(part).getLong();
        }
        return ByteBuffer.allocate(Long.BYTES).putLong(sum).array();
    }

    private static StoreOptions options(String folder) {
        return StoreOptions.on(Path.of(folder, "data")).capacity(192 << 20).memory(64 << 20)
                .orderedTables(16 << 20).waitingChanges(150_000)
                .bufferDirectory(Path.of("/dev/shm")).durability(Durability.PROCESS);
    }

    private static byte[] key(int thread, long number) {
        return ByteBuffer.allocate(9).put((byte) thread).putLong(number).array();
    }

    private static byte[] value(int thread, long number) {
        byte[] value = new byte[50 + (int) (number % 100)];
        new Random(number * THREADS + thread).nextBytes(value);
        return value;
    }

    /** Threads that each write a row and count it in one batch, say so, and go on until killed. */
    static final class Child {
        private Child() {
        }

        public static void main(String[] arguments) {
            Store store = Store.open(options(arguments[0]));
            OrderedTable sums = store.table("sums");
            sums.merge(TableKillTest::add);
            for (int thread = 0; thread < THREADS; thread++) {
                int own = thread;
                new Thread(() -> write(store, own)).start();
            }
        }

        private static void write(Store store, int thread) {
            OrderedTable rows = store.table("rows");
            OrderedTable sums = store.table("sums");
            byte[] counter = {(byte) thread};
            byte[] sum = sums.get(counter);
            long number = sum == null ? 0 : ByteBuffer.wrap(sum).getLong();
            byte[] one = ByteBuffer.allocate(Long.BYTES).putLong(1).array();
            try (TableBatch batch = store.batch()) {
                while (true) {
                    batch.clear().put(rows, key(thread, number), value(thread, number))
                            .add(sums, counter, one).write();
                    number++;
                    System.out.print(thread + " " + number + ".\n");
                }
            }
        }
    }
}
