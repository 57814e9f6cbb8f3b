package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TransactionTest {
    @TempDir
    Path folder;
    private TransactionalHeap heap;

    private static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    @BeforeEach
    void open() {
        heap = Heaps.transactional(folder);
    }

    @AfterEach
    void close() {
        heap.close();
    }

    private void reopen() {
        heap.close();
        heap = TransactionalHeap.openHeap(Heaps.at(folder));
        assertEquals("", heap.check());
    }

    @Test
    void whoWaitsForTheEndIsToldOnceWhatItWas() {
        StringBuilder told = new StringBuilder();
        Transaction.create(heap, () -> {
            heap.whenSettled(() -> told.append("a"), () -> told.append("-a"));
            assertThrows(Refused.class, () -> Transaction.create(heap, () -> {
                heap.whenSettled(() -> told.append("b"), () -> told.append("-b"));
                throw new Refused();
            }));
            assertEquals("-b", told.toString());
            heap.whenSettled(() -> told.append("c"), () -> told.append("-c"));
        });
        assertEquals("-bac", told.toString());
        heap.whenSettled(() -> told.append("d"), () -> told.append("-d"));
        assertThrows(Refused.class, () -> Transaction.create(heap, () -> {
            heap.whenSettled(() -> told.append("e"), () -> told.append("-e"));
            heap.whenSettled(() -> told.append("f"), () -> told.append("-f"));
            throw new Refused();
        }));
        assertEquals("-bacd-f-e", told.toString());
    }

    @Test
    void aTransactionHoldsTheReadSideOfItsLock() {
        ReentrantReadWriteLock lock = (ReentrantReadWriteLock) heap.transactionLock();
        Transaction.create(heap, () -> assertEquals(1, lock.getReadHoldCount()));
        assertThrows(Refused.class, () -> Transaction.create(heap, () -> {
            throw new Refused();
        }));
        assertEquals(0, lock.getReadLockCount());
    }

    @Test
    void anAbortRestoresStoresAllocationsFreesAndRoot() {
        TransactionalMemoryBlock kept = heap.allocateMemoryBlock(64);
        kept.setLong(0, 1);
        heap.setRoot(kept.handle());
        long[] born = new long[1];
        assertThrows(Refused.class, () -> Transaction.create(heap, () -> {
            kept.setLong(0, 2);
            kept.setLong(8, 3);
            kept.setMemory((byte) 7, 0, 64);
            born[0] = heap.allocateMemory(128);
            heap.setRoot(born[0]);
            assertEquals(born[0], heap.getRoot());
            heap.memoryBlockFromHandle(kept.handle()).free();
            throw new Refused();
        }));
        assertEquals(kept.handle(), heap.getRoot());
        assertFalse(heap.isLive(born[0]));
        assertTrue(heap.isLive(kept.handle()));
        assertEquals(1, kept.getLong(0));
        assertEquals(0, kept.getLong(8));
        reopen();
        TransactionalMemoryBlock found = heap.memoryBlockFromHandle(heap.getRoot());
        assertEquals(1, found.getLong(0));
        assertEquals(0, found.getLong(56));
    }

    @Test
    void whatIsDoneApartIsCommittedThoughTheTransactionAroundItIsUndone() {
        TransactionalMemoryBlock around = heap.allocateMemoryBlock(8);
        long[] made = new long[2];
        assertThrows(Refused.class, () -> Transaction.create(heap, () -> {
            around.setLong(0, 1);
            made[0] = heap.allocateMemory(8);
            made[1] = Transaction.apart(heap, () -> {
                long block = heap.allocateMemoryBlock(8, range -> range.setLong(0, 7)).handle();
                heap.setRoot(block);
                return block;
            });
            assertThrows(Refused.class, () -> Transaction.apart(heap, () -> {
                heap.setRoot(0);
                throw new Refused();
            }));
            around.setLong(0, 2);
            throw new Refused();
        }));
        assertEquals(0, around.getLong(0));
        assertFalse(heap.isLive(made[0]));
        reopen();
        assertEquals(made[1], heap.getRoot());
        assertEquals(7, heap.memoryBlockFromHandle(made[1]).getLong(0));
    }

    @Test
    void anInnerAbortUndoesTheInnerPartOnly() {
        TransactionalMemoryBlock block = heap.allocateMemoryBlock(64);
        long[] born = new long[3];
        Transaction outer = Transaction.create(heap);
        outer.run(() -> {
            block.setLong(0, 1);
            block.setLong(8, 1);
            born[0] = heap.allocateMemory(16);
            assertThrows(Refused.class, () -> Transaction.create(heap, () -> {
                block.setLong(0, 2);
                block.setLong(16, 2);
                born[1] = heap.allocateMemory(16);
                throw new Refused();
            }));
            assertEquals(1, block.getLong(0));
            assertEquals(0, block.getLong(16));
            Transaction.create(heap, () -> block.setLong(24, 3));
            born[2] = heap.allocateMemory(16);
            block.setLong(8, 4);
        });
        assertSame(Transaction.State.Committed, outer.state());
        assertTrue(heap.isLive(born[0]));
        assertTrue(heap.isLive(born[2]));
        heap.setRoot(block.handle());
        reopen();
        TransactionalMemoryBlock found = heap.memoryBlockFromHandle(heap.getRoot());
        assertEquals(1, found.getLong(0));
        assertEquals(4, found.getLong(8));
        assertEquals(0, found.getLong(16));
        assertEquals(3, found.getLong(24));
    }

    @Test
    void anOuterAbortUndoesWhatInnerBodiesDid() {
        TransactionalMemoryBlock block = heap.allocateMemoryBlock(64);
        long[] born = new long[1];
        assertThrows(Refused.class, () -> Transaction.create(heap, () -> {
            Transaction.create(heap, () -> {
                block.setLong(0, 9);
                born[0] = heap.allocateMemory(16);
            });
            throw new Refused();
        }));
        assertEquals(0, block.getLong(0));
        assertFalse(heap.isLive(born[0]));
    }

    @Test
    void aFullHeapInsideATransactionCanBeCaught() {
        TransactionalMemoryBlock block = heap.allocateMemoryBlock(8);
        Transaction.create(heap, () -> {
            block.setLong(0, 1);
            assertThrows(HeapException.class, () -> heap.allocateMemory(1L << 40));
            assertThrows(HeapException.class, () -> {
                while (true) {
                    heap.allocateMemory(1 << 20);
                }
            });
            block.setLong(0, 2);
        });
        assertEquals(2, block.getLong(0));
        heap.setRoot(block.handle());
        reopen();
        assertEquals(2, heap.memoryBlockFromHandle(heap.getRoot()).getLong(0));
    }

    @Test
    void whatAnAbortReturnsCanBeAllocatedAgain() {
        for (int round = 0; round < 100; round++) {
            assertThrows(Refused.class, () -> Transaction.create(heap, () -> {
                heap.allocateMemory(4 << 20);
                heap.allocateMemory(40);
                throw new Refused();
            }));
        }
    }

    @Test
    void statesFollowTheBodies() {
        Transaction transaction = Transaction.create(heap);
        assertSame(Transaction.State.New, transaction.state());
        transaction.run(() -> {
            assertSame(Transaction.State.Active, transaction.state());
            transaction.run(() -> assertTrue(transaction.isValid()));
            assertSame(Transaction.State.Active, transaction.state());
        });
        assertSame(Transaction.State.Committed, transaction.state());
        assertFalse(transaction.isValid());
        assertThrows(TransactionException.class, () -> transaction.run(() -> { }));
        Transaction aborted = Transaction.create(heap);
        assertThrows(Refused.class, () -> aborted.run((Runnable) () -> {
            throw new Refused();
        }));
        assertSame(Transaction.State.Aborted, aborted.state());
    }

    @Test
    void rawStoresAreAtomicOnceAddedToTheTransaction() {
        String path = folder.resolve("raw").toString();
        try (Heap raw = Heap.createHeap(path, Heaps.BYTES)) {
            MemoryBlock block = raw.allocateMemoryBlock(64, true);
            assertThrows(IllegalStateException.class, () -> block.addToTransaction(0, 8));
            assertThrows(Refused.class, () -> Transaction.create(raw, () -> {
                block.addToTransaction(0, 16);
                block.setLong(0, 5);
                block.setLong(32, 6);
                throw new Refused();
            }));
            assertEquals(0, block.getLong(0));
            assertEquals(6, block.getLong(32));
        }
    }

    @Test
    void durableStoresToABlockOfTheCurrentTransactionSurvive() {
        String path = folder.resolve("persistent").toString();
        long[] handle = new long[1];
        try (PersistentHeap durable = PersistentHeap.createHeap(path, Heaps.BYTES)) {
            Transaction.create(durable, () -> {
                PersistentMemoryBlock block = durable.allocateMemoryBlock(64, true);
                block.setLong(0, 5);
                block.transactionalSetLong(8, 6);
                handle[0] = block.handle();
            });
        }
        try (PersistentHeap durable = PersistentHeap.openHeap(path)) {
            assertEquals(5, durable.memoryBlockFromHandle(handle[0]).getLong(0));
            assertEquals(6, durable.memoryBlockFromHandle(handle[0]).getLong(8));
        }
    }

    @Test
    void aComparisonThatFailedLeavesNothingToUndo() throws Exception {
        // The undo put back what stood there when the comparison failed, over what another thread
        // had committed since.
        TransactionalMemoryBlock block = heap.allocateMemoryBlock(64);
        assertThrows(Refused.class, () -> Transaction.create(heap, () -> {
            assertFalse(block.compareAndSetLong(0, 7, 8));
            assertFalse(block.compareAndSetInt(16, 7, 8));
            inAnotherThread(() -> {
                block.setLong(0, 5);
                block.setInt(16, 6);
            });
            assertTrue(block.compareAndSetLong(8, 0, 9));
            assertEquals(0, block.getAndAddLong(24, 3));
            throw new Refused();
        }));
        assertEquals(5, block.getLong(0));
        assertEquals(6, block.getInt(16));
        assertEquals(0, block.getLong(8));
        assertEquals(0, block.getLong(24));
        Transaction.create(heap, () -> {
            assertFalse(block.compareAndSetLong(0, 7, 8));
            assertTrue(block.compareAndSetLong(0, 5, 8));
            block.setLong(8, 1);
        });
        heap.setRoot(block.handle());
        reopen();
        assertEquals(8, heap.memoryBlockFromHandle(heap.getRoot()).getLong(0));
        assertEquals(1, heap.memoryBlockFromHandle(heap.getRoot()).getLong(8));
    }

    private static void inAnotherThread(Runnable body) {
        Thread thread = new Thread(body);
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException failure) {
            throw new IllegalStateException(failure);
        }
    }

    @Test
    void oneThreadMayHaveTransactionsInTwoHeaps() {
        String path = folder.resolve("other").toString();
        try (TransactionalHeap other = TransactionalHeap.createHeap(path, Heaps.BYTES)) {
            TransactionalMemoryBlock here = heap.allocateMemoryBlock(8);
            TransactionalMemoryBlock there = other.allocateMemoryBlock(8);
            assertThrows(Refused.class, () -> Transaction.create(heap, () -> {
                here.setLong(0, 1);
                Transaction.create(other, () -> there.setLong(0, 2));
                throw new Refused();
            }));
            assertEquals(0, here.getLong(0));
            assertEquals(2, there.getLong(0));
        }
    }

    @Test
    void aTransactionOfManyRangesCommitsAllOfThem() {
        TransactionalMemoryBlock block = heap.allocateMemoryBlock(1 << 20);
        Transaction.create(heap, () -> {
            for (int offset = 0; offset < 1 << 20; offset += 24) {
                block.setInt(offset, offset);
            }
        });
        heap.setRoot(block.handle());
        reopen();
        TransactionalMemoryBlock found = heap.memoryBlockFromHandle(heap.getRoot());
        for (int offset = 0; offset < 1 << 20; offset += 24) {
            assertEquals(offset, found.getInt(offset));
        }
    }

    @Test
    void platformThreadsKeepTheirTransactionsApart() throws Exception {
        try (Pool pool = new Pool(Executors.newFixedThreadPool(8))) {
            runApart(pool.executor, 64);
        }
    }

    @Test
    void virtualThreadsThatBlockKeepTheirTransactionsApart() throws Exception {
        Assumptions.assumeTrue(Runtime.version().feature() >= 21, "needs virtual threads");
        ExecutorService threads = (ExecutorService) Executors.class
                .getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        try (Pool pool = new Pool(threads)) {
            runApart(pool.executor, 64);
        }
    }

    /** All bodies are inside at once; every third one aborts, and it alone is undone. */
    private void runApart(ExecutorService executor, int threads) throws Exception {
        int together = Math.min(threads, 8);
        List<TransactionalMemoryBlock> blocks = new ArrayList<>();
        for (int index = 0; index < threads; index++) {
            blocks.add(heap.allocateMemoryBlock(64));
        }
        for (int first = 0; first < threads; first += together) {
            CountDownLatch inside = new CountDownLatch(together);
            List<Future<?>> running = new ArrayList<>();
            for (int index = first; index < first + together; index++) {
                int mine = index;
                running.add(executor.submit(() -> {
                    Transaction.create(heap, () -> {
                        blocks.get(mine).setLong(0, mine + 1);
                        inside.countDown();
                        await(inside);
                        blocks.get(mine).setLong(8, mine + 1);
                        if (mine % 3 == 0) {
                            throw new Refused();
                        }
                    });
                }));
            }
            for (int index = 0; index < together; index++) {
                Future<?> each = running.get(index);
                if ((first + index) % 3 == 0) {
                    assertThrows(java.util.concurrent.ExecutionException.class, each::get);
                } else {
                    each.get();
                }
            }
        }
        for (int index = 0; index < threads; index++) {
            long expected = index % 3 == 0 ? 0 : index + 1;
            assertEquals(expected, blocks.get(index).getLong(0));
            assertEquals(expected, blocks.get(index).getLong(8));
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private static final class Pool implements AutoCloseable {
        private final ExecutorService executor;

        Pool(ExecutorService executor) {
            this.executor = executor;
        }

        @Override
        public void close() {
            executor.shutdown();
        }
    }
}
