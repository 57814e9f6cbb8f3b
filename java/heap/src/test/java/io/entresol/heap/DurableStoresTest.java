package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Stores that are durable at once, beside stores of a transaction that is undone or killed. */
class DurableStoresTest {
    @TempDir
    Path folder;

    private static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    @Test
    void whatIsAddedToTheTransactionBehindAFlushIsUndone() {
        // The flushed range passed for one whose old bytes were kept.
        try (Heap heap = Heaps.raw(folder)) {
            MemoryBlock block = heap.allocateMemoryBlock(64);
            undone(heap, () -> {
                block.setLong(0, 1);
                block.flush();
                block.addToTransaction(0, 8);
                block.setLong(0, 2);
            });
            assertEquals(1, block.getLong(0));
        }
    }

    @Test
    void storesAndFlushesAreAsDurableAsTheHeapsLevelSays() throws Exception {
        // Each was synced, whatever the level.
        HeapOptions pages = HeapOptions.DEFAULT.medium(Medium.PAGES);
        assertStoresAreSynced(true, 1, pages.durability(Durability.SYNC));
        assertStoresAreSynced(false, 2, pages.buffered(Integer.MAX_VALUE));
        assertStoresAreSynced(false, 3, pages.durability(Durability.NONE));
    }

    private void assertStoresAreSynced(boolean synced, int number, HeapOptions options)
            throws Exception {
        Path path = folder.resolve("level" + number);
        Path killed = folder.resolve("killed" + number);
        try (PersistentHeap heap =
                PersistentHeap.createHeap(path.toString(), Heaps.BYTES, options)) {
            PersistentMemoryBlock block = heap.allocateMemoryBlock(64);
            heap.setRoot(block.handle());
            long syncs = heap.statistics().syncs();
            block.setLong(0, 1);
            block.getAndAddLong(0, 1);
            block.withRange(8, 8, range -> {
                range.setLong(8, 3);
            });
            Transaction.create(heap, () -> block.setLong(16, 4));
            long more = heap.statistics().syncs() - syncs;
            assertTrue(synced ? more >= 4 : more == 0, more + " syncs");
            if (options.durability == Durability.NONE) {
                return;
            }
            Files.copy(path, killed);
        }
        try (PersistentHeap heap = PersistentHeap.openHeap(killed.toString())) {
            PersistentMemoryBlock block = heap.memoryBlockFromHandle(heap.getRoot());
            assertEquals(2, block.getLong(0));
            assertEquals(3, block.getLong(8));
            assertEquals(4, block.getLong(16));
        }
    }

    @Test
    void aBlockAllocatedAtOnceIsNoPartOfTheTransactionAroundIt() {
        long handle;
        try (PersistentHeap heap = Heaps.persistent(folder)) {
            long[] made = new long[1];
            undone(heap, () -> {
                PersistentMemoryBlock block =
                        heap.allocateMemoryBlock(64, range -> range.setLong(0, 1));
                block.transactionalSetLong(8, 2);
                block.transactionalSetLong(0, 3);
                made[0] = block.handle();
            });
            handle = made[0];
            assertEquals(1, heap.memoryBlockFromHandle(handle).getLong(0));
        }
        try (PersistentHeap heap = PersistentHeap.openHeap(Heaps.at(folder))) {
            assertEquals(1, heap.memoryBlockFromHandle(handle).getLong(0));
            assertEquals(0, heap.memoryBlockFromHandle(handle).getLong(8));
        }
    }

    @Test
    void aFlushLeavesWhatATransactionAddedToItsCommit() {
        // A kill behind the flush left one of two stores that belong together.
        try (Heap heap = Heaps.raw(folder)) {
            MemoryBlock block = heap.allocateMemoryBlock(64);
            heap.setRoot(block.handle());
            String killed = folder.resolve("killed").toString();
            undone(heap, () -> {
                block.addToTransaction(8, 16);
                block.setLong(0, 5);
                block.setLong(8, 1);
                block.setLong(16, 1);
                block.setLong(24, 6);
                block.flush(0, 32);
                heap.backup(killed);
            });
            assertFound(killed, 5, 0, 0, 6);
            Transaction.create(heap, () -> {
                block.addToTransaction(8, 16);
                block.setLong(8, 2);
                block.flush(8, 8);
                block.setLong(16, 2);
            });
            String after = folder.resolve("after").toString();
            heap.backup(after);
            assertFound(after, 5, 2, 2, 6);
        }
    }

    @Test
    void aFlushBetweenWhatATransactionAddedIsOneSync() {
        // Each gap was a record and a sync of its own, and a kill left some of them durable.
        try (Heap heap = Heaps.raw(folder)) {
            MemoryBlock block = heap.allocateMemoryBlock(4096);
            heap.setRoot(block.handle());
            String killed = folder.resolve("killed").toString();
            undone(heap, () -> {
                for (long word = 0; word < 512; word++) {
                    if (word % 2 == 0) {
                        block.addToTransaction(8 * word, 8);
                    }
                    block.setLong(8 * word, word + 1);
                }
                long syncs = heap.statistics().syncs();
                long records = heap.statistics().records();
                block.flush(0, 4096);
                assertEquals(1, heap.statistics().records() - records);
                assertEquals(1, heap.statistics().syncs() - syncs);
                heap.backup(killed);
            });
            assertEquals(0, block.getLong(0));
            assertEquals(2, block.getLong(8));
            assertFound(killed, 0, 2, 0, 4, 0, 6);
        }
    }

    @Test
    void aDurableStoreToWhatATransactionChangedIsUndoneInTheFileToo() {
        // Memory had the old value again, and the file the new one.
        long handle;
        try (PersistentHeap heap = Heaps.persistent(folder)) {
            PersistentMemoryBlock block = heap.allocateMemoryBlock(64);
            handle = block.handle();
            block.setLong(0, 1);
            undone(heap, () -> {
                block.transactionalSetLong(0, 2);
                block.setLong(0, 3);
            });
            assertEquals(1, block.getLong(0));
        }
        try (PersistentHeap heap = PersistentHeap.openHeap(Heaps.at(folder))) {
            assertEquals(1, heap.memoryBlockFromHandle(handle).getLong(0));
        }
    }

    private void assertFound(String path, long... expected) {
        try (Heap heap = Heap.openHeap(path)) {
            MemoryBlock block = heap.memoryBlockFromHandle(heap.getRoot());
            for (int index = 0; index < expected.length; index++) {
                assertEquals(expected[index], block.getLong(8L * index), "word " + index);
            }
        }
    }

    private static void undone(AnyHeap heap, Runnable body) {
        assertThrows(Refused.class, () -> Transaction.create(heap, () -> {
            body.run();
            throw new Refused();
        }));
    }
}
