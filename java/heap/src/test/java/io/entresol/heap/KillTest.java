package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A JVM that transfers between accounts is killed again and again. Every transfer that it reported
 * as committed is there, and no transfer is there by half.
 */
class KillTest {
    private static final int ACCOUNTS = 16;
    private static final long EACH = 1000;

    @TempDir
    Path folder;

    @Test
    void everyCommittedTransactionIsThereAndNoneByHalf() throws Exception {
        create();
        new Kills(42).everyCommittedIsFound(Child.class, Heaps.at(folder), this::check);
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

    /** The number of the last transaction. */
    private long check() {
        try (TransactionalHeap heap = TransactionalHeap.openHeap(Heaps.at(folder))) {
            assertEquals("", heap.check());
            TransactionalMemoryBlock bank = heap.memoryBlockFromHandle(heap.getRoot());
            long count = bank.getLong(0);
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
