package io.entresol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A JVM that counts up the values of keys is killed again and again, at a place that a seed chooses
 * ({@code entresol.seed}, printed); no key has less than what was acknowledged.
 */
class StoreKillTest {
    private static final int ROUNDS = Integer.getInteger("entresol.kill.rounds", 5);
    private static final long SEED = Long.getLong("entresol.seed", 42);
    private static final int KEYS = 200;

    @TempDir
    Path folder;

    @Test
    void acknowledgedEntriesSurviveTheDeathOfTheProcess() throws Exception {
        System.out.println("kills: " + ROUNDS + " rounds, -Dentresol.seed=" + SEED);
        Random random = new Random(SEED);
        long last = 0;
        for (int round = 0; round < ROUNDS; round++) {
            long acknowledged = runAndKill(1 + random.nextInt(60));
            assertTrue(acknowledged > last, "round " + round + " acknowledged nothing");
            last = acknowledged;
            check(acknowledged, round);
        }
    }

    private void check(long acknowledged, int round) {
        try (Store store = Store.open(options(folder.toString()))) {
            assertEquals(KEYS, store.count());
            for (int key = 0; key < KEYS; key++) {
                ByteBuffer value = ByteBuffer.wrap(store.get(key(key)));
                long found = value.getLong();
                assertTrue(found >= acknowledged && found <= acknowledged + 1,
                        "round " + round + ", key " + key + ": " + acknowledged
                                + " was acknowledged, " + found + " is there");
                assertEquals(new Random(found + key).nextLong(), value.getLong());
            }
        }
    }

    /** The last number that the child said all keys have, before it was killed. */
    private long runAndKill(int after) throws IOException, InterruptedException {
        Process child = ChildJvm.start(List.of(), Child.class, folder.toString());
        long acknowledged = 0;
        try (BufferedReader lines = new BufferedReader(
                new InputStreamReader(child.getInputStream(), StandardCharsets.US_ASCII))) {
            for (int line = 0; line < after; line++) {
                acknowledged = Long.parseLong(lines.readLine());
            }
            // The handle leaves the pipe open.
            child.toHandle().destroyForcibly();
            // What it said before it died counts too.
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                acknowledged = Long.parseLong(line);
            }
        }
        child.waitFor();
        return acknowledged;
    }

    private static StoreOptions options(String folder) {
        return StoreOptions.on(Path.of(folder, "data")).capacity(64 << 20).memory(64 << 20)
                .bufferDirectory(Path.of("/dev/shm")).durability(Durability.PROCESS);
    }

    private static byte[] key(int number) {
        return ("key " + number).getBytes(StandardCharsets.US_ASCII);
    }

    /** Puts the next number under every key, says so, and goes on until it is killed. */
    static final class Child {
        private Child() {
        }

        public static void main(String[] arguments) {
            Store store = Store.open(options(arguments[0]));
            byte[] first = store.get(key(0));
            long number = first == null ? 0 : ByteBuffer.wrap(first).getLong();
            while (true) {
                number++;
                List<CompletionStage<Long>> puts = new ArrayList<>();
                for (int key = 0; key < KEYS; key++) {
                    byte[] value = ByteBuffer.allocate(1_000).putLong(number)
                            .putLong(new Random(number + key).nextLong()).array();
                    puts.add(store.putAsync(key(key), value));
                }
                puts.forEach(put -> put.toCompletableFuture().join());
                System.out.println(number);
            }
        }
    }
}
