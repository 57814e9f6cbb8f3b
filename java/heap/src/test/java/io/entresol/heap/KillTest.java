package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A JVM that transfers between accounts is killed again and again, at a place that a seed chooses
 * ({@code entresol.seed}, printed); what it said was committed is there, and no half of anything.
 */
class KillTest {
    private static final int ROUNDS = Integer.getInteger("entresol.kill.rounds", 5);
    private static final long SEED = Long.getLong("entresol.seed", 42);
    private static final int ACCOUNTS = 16;
    private static final long EACH = 1000;

    @TempDir
    Path folder;

    @Test
    void everyCommittedTransactionIsThereAndNoneByHalf() throws Exception {
        System.out.println("kills: " + ROUNDS + " rounds, -Dentresol.seed=" + SEED);
        create();
        Random random = new Random(SEED);
        long last = 0;
        for (int round = 0; round < ROUNDS; round++) {
            long acknowledged = runAndKill(round, 1 + random.nextInt(300));
            assertTrue(acknowledged > last, "round " + round + " committed nothing");
            last = check(acknowledged, round);
        }
    }

    private void create() {
        try (TransactionalHeap heap = Heaps.transactional(folder)) {
            TransactionalMemoryBlock bank = heap.allocateMemoryBlock(8 * (ACCOUNTS + 2));
            Transaction.create(heap, () -> {
                for (int account = 0; account < ACCOUNTS; account++) {
                    bank.setLong(8 + 8 * account, EACH);
                }
                heap.setRoot(bank.handle());
            });
        }
    }

    /** The last transaction that the child said was committed before it was killed. */
    private long runAndKill(int round, int after) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + File.separator + "bin/java");
        for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (flag.startsWith("-Dentresol.heap.native=jni") || flag.contains("native-access")) {
                command.add(flag);
            }
        }
        command.addAll(List.of("-cp", classPath(), "io.entresol.heap.KillTest$Child",
                Heaps.at(folder), String.valueOf(SEED + round)));
        Process child = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        long acknowledged = 0;
        try (BufferedReader lines = new BufferedReader(
                new InputStreamReader(child.getInputStream(), StandardCharsets.US_ASCII))) {
            for (int line = 0; line < after; line++) {
                acknowledged = Long.parseLong(lines.readLine());
            }
            child.destroyForcibly();
        }
        child.waitFor();
        return acknowledged;
    }

    private long check(long acknowledged, int round) {
        try (TransactionalHeap heap = TransactionalHeap.openHeap(Heaps.at(folder))) {
            assertEquals("", heap.check());
            TransactionalMemoryBlock bank = heap.memoryBlockFromHandle(heap.getRoot());
            long count = bank.getLong(0);
            assertTrue(count >= acknowledged, "round " + round + ": " + acknowledged
                    + " transactions were acknowledged, " + count + " are there");
            long sum = 0;
            for (int account = 0; account < ACCOUNTS; account++) {
                sum += bank.getLong(8 + 8 * account);
            }
            assertEquals(ACCOUNTS * EACH, sum);
            long note = bank.getLong(8 + 8 * ACCOUNTS);
            if (count > 0) {
                assertEquals(count, heap.memoryBlockFromHandle(note).getLong(0));
                assertEquals(count, heap.memoryBlockFromHandle(note).getLong(120));
            }
            return count;
        }
    }

    private static String classPath() {
        // Surefire may hand the class path over in a jar of its own.
        return System.getProperty("surefire.test.class.path",
                System.getProperty("java.class.path"));
    }

    /** Transfers until it is killed; says the number of each committed transaction. */
    static final class Child {
        private Child() {
        }

        public static void main(String[] arguments) {
            TransactionalHeap heap = TransactionalHeap.openHeap(arguments[0]);
            Random random = new Random(Long.parseLong(arguments[1]));
            TransactionalMemoryBlock bank = heap.memoryBlockFromHandle(heap.getRoot());
            while (true) {
                long count = bank.getLong(0) + 1;
                int from = random.nextInt(ACCOUNTS);
                int to = random.nextInt(ACCOUNTS);
                long amount = random.nextInt(50);
                Transaction.create(heap, () -> {
                    bank.setLong(8 + 8 * from, bank.getLong(8 + 8 * from) - amount);
                    bank.setLong(8 + 8 * to, bank.getLong(8 + 8 * to) + amount);
                    bank.setLong(0, count);
                    long old = bank.getLong(8 + 8 * ACCOUNTS);
                    if (old != 0) {
                        heap.memoryBlockFromHandle(old).free();
                    }
                    TransactionalMemoryBlock note = heap.allocateMemoryBlock(128);
                    note.setLong(0, count);
                    note.setLong(120, count);
                    bank.setLong(8 + 8 * ACCOUNTS, note.handle());
                });
                System.out.println(count);
                System.out.flush();
            }
        }
    }
}
