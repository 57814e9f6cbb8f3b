package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Transactions during which the medium fails. */
final class UnsettledTest {
    private static final byte[] KEY = {1};

    @TempDir
    Path folder;

    /**
     * The stores of a transaction whose record was in the log already were put back, and what the
     * native library did for it, to maps and blocks, stayed; the exception said that all of it was
     * undone.
     */
    @Test
    void aTransactionThatMayBeCommittedIsSeenAsOneUntilTheHeapIsReopened() throws Exception {
        ChildJvm child = ChildJvm.run(folder, ChildJvm.command(
                "jni", List.of(), Child.class, Heaps.at(folder)));
        assertEquals(0, child.status, child.out + child.err);
        try (TransactionalHeap heap = TransactionalHeap.openHeap(Heaps.at(folder))) {
            assertEquals("", heap.check());
            TransactionalMemoryBlock root = heap.memoryBlockFromHandle(heap.getRoot());
            RadixTree map = RadixTree.open(heap, root.getLong(0));
            long value = root.getLong(8);
            assertTrue(value == 1 || value == 2, value + " was stored alone");
            assertEquals(value, map.get(KEY, 0));
            assertEquals(value == 1, heap.isLive(root.getLong(16)));
        }
    }

    /** Lets its writes fail, and looks at what becomes of a transaction. */
    static final class Child {
        private Child() {
        }

        public static void main(String[] arguments) throws Exception {
            TransactionalHeap heap = TransactionalHeap.createHeap(arguments[0], Heaps.BYTES,
                    HeapOptions.DEFAULT.medium(Medium.PAGES));
            TransactionalMemoryBlock root = heap.allocateMemoryBlock(24);
            TransactionalMemoryBlock freed = heap.allocateMemoryBlock(64);
            RadixTree map = RadixTree.create(heap);
            map.put(KEY, 1, 0);
            root.setLong(0, map.handle());
            root.setLong(8, 1);
            root.setLong(16, freed.handle());
            heap.setRoot(root.handle());
            refuseWrites();

            StringBuilder told = new StringBuilder();
            UnsettledException unsettled = assertThrows(UnsettledException.class,
                    () -> Transaction.create(heap, () -> {
                        heap.whenSettled(() -> told.append("committed"),
                                () -> told.append("undone"));
                        map.put(KEY, 2, 0);
                        root.setLong(8, 2);
                        freed.free();
                    }));
            assertTrue(unsettled.getMessage().contains("reopened"), unsettled.getMessage());
            assertEquals("committed", told.toString());
            assertAllIsDone(heap, map, root);

            TransactionException refused = assertThrows(TransactionException.class,
                    () -> Transaction.create(heap, () -> {
                        map.put(KEY, 3, 0);
                        root.setLong(8, 3);
                    }));
            assertFalse(refused instanceof UnsettledException);
            assertThrows(TransactionException.class, () -> root.setLong(8, 3));
            assertAllIsDone(heap, map, root);
            // Without closing it, as a program does that is told to reopen the heap.
            Runtime.getRuntime().halt(0);
        }

        private static void assertAllIsDone(
                TransactionalHeap heap, RadixTree map, TransactionalMemoryBlock root) {
            assertEquals(2, root.getLong(8));
            assertEquals(2, map.get(KEY, 0));
            assertFalse(heap.isLive(root.getLong(16)));
        }

        /** From now on the process may write to no file behind its first page. */
        private static void refuseWrites() throws Exception {
            Process limit = new ProcessBuilder("prlimit", "--pid",
                    "" + ProcessHandle.current().pid(), "--fsize=4096:4096").start();
            assertEquals(0, limit.waitFor());
        }
    }
}
