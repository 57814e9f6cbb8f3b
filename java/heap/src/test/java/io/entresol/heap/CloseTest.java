package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Heaps and pools that are closed while other threads use them. */
class CloseTest {
    private static final int ROUNDS = 20;
    private static final int USES_BEFORE = 50;

    @TempDir
    Path folder;

    /** Something that a thread does with a heap again and again. */
    private interface Use {
        void once();
    }

    @Test
    void closingUnderThreadsEndsThemByExceptionsAndKeepsWhatWasCommitted() throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            TransactionalHeap heap = TransactionalHeap.createHeap(
                    folder.resolve("heap-" + round).toString(), Heaps.BYTES,
                    HeapOptions.DEFAULT.durability(Durability.NONE));
            TransactionalMemoryBlock block = heap.allocateMemoryBlock(4096);
            RadixTree tree = RadixTree.create(heap);
            for (int key = 0; key < 200; key++) {
                tree.put(new byte[] {(byte) key, 1}, key, -1);
            }
            heap.setRoot(tree.handle());
            ByteBuffer buffer = block.asByteBuffer(0, 4096);
            List<Use> uses = List.of(
                    () -> block.getLong(8),
                    () -> block.setLong(16, block.getLong(16) + 1),
                    () -> tree.get(new byte[] {9, 1}, -1),
                    () -> tree.put(new byte[] {9, 1}, 9, -1),
                    () -> all(tree),
                    () -> heap.allocateMemoryBlock(300).free(),
                    () -> {
                        buffer.getLong(64);
                        heap.getRoot();
                    });
            List<FutureTask<RuntimeException>> running = run(uses);
            heap.close();
            for (FutureTask<RuntimeException> each : running) {
                RuntimeException end = each.get();
                assertTrue(end instanceof IllegalStateException || end instanceof HeapException
                        || end instanceof TransactionException, () -> "ended by " + end);
            }
            assertThrows(IllegalStateException.class, () -> block.getLong(0));
            assertThrows(IllegalStateException.class, () -> tree.get(new byte[0], -1));
            try (TransactionalHeap again =
                    TransactionalHeap.openHeap(folder.resolve("heap-" + round).toString())) {
                assertEquals("", again.check());
                assertEquals(9, RadixTree.open(again, again.getRoot()).get(new byte[] {9, 1}, -1));
            }
        }
    }

    @Test
    void closingARawHeapTakesATransactionBackThatAnotherThreadHasOpen() throws Exception {
        // Closing keeps what was never flushed, and kept what was never committed as well.
        Heap heap = Heaps.raw(folder);
        MemoryBlock block = heap.allocateMemoryBlock(64);
        heap.setRoot(block.handle());
        block.setLong(0, 7);
        CountDownLatch stored = new CountDownLatch(1);
        CountDownLatch closed = new CountDownLatch(1);
        block.setLong(16, treeOfOne(heap));
        FutureTask<Void> task = new FutureTask<>(() -> {
            storeHalf(heap, block, stored, closed);
            return null;
        });
        new Thread(task).start();
        stored.await();
        heap.close();
        closed.countDown();
        Throwable end = assertThrows(ExecutionException.class, task::get).getCause();
        assertEquals(TransactionException.class, end.getClass());
        assertFoundAsBefore();
    }

    @Test
    void theEndOfTheJvmTakesATransactionOfARawHeapBack() throws Exception {
        ChildJvm child = ChildJvm.run(folder, ChildJvm.command(
                io.entresol.heap.engine.Native.path(), List.of(), Ending.class,
                Heaps.at(folder)));
        assertEquals(0, child.status, child.err);
        assertFoundAsBefore();
    }

    private void assertFoundAsBefore() {
        try (Heap heap = Heap.openHeap(Heaps.at(folder))) {
            MemoryBlock block = heap.memoryBlockFromHandle(heap.getRoot());
            assertEquals(7, block.getLong(0));
            assertEquals(0, block.getLong(8));
            RadixTree tree = RadixTree.open(heap, block.getLong(16));
            assertEquals(1, tree.size());
            assertEquals(1, count(tree));
            assertEquals(5, tree.get(new byte[] {9}, -1));
            assertEquals("", heap.check());
        }
    }

    private static long treeOfOne(Heap heap) {
        RadixTree tree = RadixTree.create(heap);
        tree.put(new byte[] {9}, 5, -1);
        return tree.handle();
    }

    private static int count(RadixTree tree) {
        int count = 0;
        try (RadixTree.Cursor cursor = tree.entries()) {
            while (cursor.next()) {
                count++;
            }
        }
        return count;
    }

    @Test
    void aMapOfARawHeapIsWholeThoughItWasClosedUnderChanges() throws Exception {
        // What was never flushed is kept, and so was the half of a change that was going on.
        for (int round = 0; round < 3; round++) {
            String path = folder.resolve("raw-" + round).toString();
            HeapOptions options = HeapOptions.DEFAULT.durability(Durability.NONE);
            Heap heap = Heap.createHeap(path, Heaps.BYTES, options);
            RadixTree tree = RadixTree.create(heap);
            heap.setRoot(tree.handle());
            for (long number = 0; number < 30_000; number++) {
                tree.put(key(number), 1, -1);
            }
            long[] next = {30_000, 0};
            List<FutureTask<RuntimeException>> running = run(List.of(
                    () -> tree.put(key(next[0]++), 1, -1),
                    () -> tree.remove(key(next[1]++), -1)));
            heap.close();
            for (FutureTask<RuntimeException> each : running) {
                each.get();
            }
            try (Heap again = Heap.openHeap(path, options)) {
                assertEquals("", again.check());
                RadixTree found = RadixTree.open(again, again.getRoot());
                assertEquals(found.size(), count(found));
                RadixTree.forEachBlock(again, found.handle(),
                        block -> assertTrue(again.isLive(block)));
            }
        }
    }

    private static byte[] key(long number) {
        return ByteBuffer.allocate(Long.BYTES).putLong(number * 0x9E3779B97F4A7C15L).array();
    }

    private static void storeHalf(
            Heap heap, MemoryBlock block, CountDownLatch stored, CountDownLatch goOn) {
        Transaction.create(heap, () -> {
            block.addToTransaction(0, 16);
            block.setLong(0, 1);
            block.setLong(8, 1);
            RadixTree tree = RadixTree.open(heap, block.getLong(16));
            for (int key = 0; key < 50; key++) {
                tree.put(new byte[] {(byte) key}, key, -1);
            }
            stored.countDown();
            WaitTest.await(goOn);
        });
    }

    /** A program that ends while a transaction is open. */
    static final class Ending {
        private Ending() {
        }

        public static void main(String[] arguments) throws InterruptedException {
            Heap heap = Heap.createHeap(arguments[0], Heaps.BYTES);
            MemoryBlock block = heap.allocateMemoryBlock(64);
            heap.setRoot(block.handle());
            block.setLong(0, 7);
            block.setLong(16, treeOfOne(heap));
            CountDownLatch stored = new CountDownLatch(1);
            new Thread(() -> storeHalf(heap, block, stored, new CountDownLatch(1))).start();
            stored.await();
            System.exit(0);
        }
    }

    @Test
    void aPoolIsClosedUnderThreads() throws Exception {
        MemoryPool pool = MemoryPool.createPool(folder.resolve("pool").toString(), 1 << 20);
        List<FutureTask<RuntimeException>> running = run(List.of(
                () -> pool.setLong(8, pool.getLong(8) + 1),
                () -> pool.flush(0, 4096)));
        pool.close();
        for (FutureTask<RuntimeException> each : running) {
            assertEquals(IllegalStateException.class, each.get().getClass());
        }
    }

    @Test
    void aBufferOfAPoolEndsWithIt() {
        MemoryPool pool = MemoryPool.createPool(folder.resolve("pool").toString(), 1 << 20);
        pool.setByte(64, (byte) 1);
        ByteBuffer buffer = pool.asByteBuffer(0, 4096);
        assertEquals(1, buffer.get(64));
        pool.close();
        if ("ffm".equals(io.entresol.heap.engine.Native.path())) {
            assertThrows(IllegalStateException.class, () -> buffer.get(64));
        } else {
            assertEquals(0, buffer.get(64));
        }
    }

    @Test
    void openingAHeapThatIsBeingClosedWaitsForThat() throws Exception {
        // It gave the closed heap, or said that this process had it open.
        Heaps.transactional(folder).close();
        for (int round = 0; round < 10 * ROUNDS; round++) {
            TransactionalHeap heap = TransactionalHeap.openHeap(Heaps.at(folder));
            CountDownLatch both = new CountDownLatch(2);
            FutureTask<TransactionalHeap> opening = new FutureTask<>(() -> {
                both.countDown();
                TransactionalHeap again;
                do {
                    again = TransactionalHeap.openHeap(Heaps.at(folder));
                } while (again == heap);
                return again;
            });
            new Thread(opening).start();
            both.countDown();
            both.await();
            heap.close();
            try (TransactionalHeap again = opening.get()) {
                assertEquals(0, again.getRoot());
            }
        }
    }

    @Test
    void aBufferOutlivesTheHeapThatItCameFrom() {
        ByteBuffer buffer = bufferOfAClosedHeap();
        // The heap itself is garbage now; the buffer must not lead to memory that is gone.
        for (int collection = 0; collection < 3; collection++) {
            System.gc();
        }
        try {
            assertEquals(0, buffer.get(64));
        } catch (IllegalStateException closed) {
            assertEquals("ffm", io.entresol.heap.engine.Native.path());
        }
    }

    @Test
    void aMemorySegmentIsTheBlockItselfAndEndsWithTheHeap() throws Exception {
        for (boolean raw : new boolean[] {false, true}) {
            String path = folder.resolve("segments-" + raw).toString();
            AnyHeap heap = raw ? Heap.createHeap(path, Heaps.BYTES)
                    : TransactionalHeap.createHeap(path, Heaps.BYTES);
            AnyMemoryBlock block = heap.allocateMemoryBlock(4096);
            block.setByte(100, (byte) 5);
            if ("jni".equals(io.entresol.heap.engine.Native.path())) {
                assertThrows(UnsupportedOperationException.class,
                        () -> block.asMemorySegment(0, 4096));
            } else {
                Object segment = block.asMemorySegment(36, 100);
                Class<?> type = Class.forName("java.lang.foreign.MemorySegment");
                assertEquals(100L, type.getMethod("byteSize").invoke(segment));
                assertEquals(!raw, type.getMethod("isReadOnly").invoke(segment));
                ByteBuffer bytes = (ByteBuffer) type.getMethod("asByteBuffer").invoke(segment);
                assertEquals(5, bytes.get(64));
                block.setByte(100, (byte) 6);
                assertEquals(6, bytes.get(64));
                heap.close();
                assertThrows(IllegalStateException.class, () -> bytes.get(64));
            }
            heap.close();
        }
    }

    private ByteBuffer bufferOfAClosedHeap() {
        TransactionalHeap heap = Heaps.transactional(folder);
        TransactionalMemoryBlock block = heap.allocateMemoryBlock(4096);
        block.setByte(64, (byte) 1);
        ByteBuffer buffer = block.asByteBuffer(0, 4096).slice();
        assertEquals(1, buffer.get(64));
        heap.close();
        return buffer;
    }

    private static void all(RadixTree tree) {
        try (RadixTree.Cursor cursor = tree.entries()) {
            while (cursor.next()) {
                cursor.value();
            }
        }
    }

    /** Begins a thread for each use; all have done it for a while when this returns. */
    private static List<FutureTask<RuntimeException>> run(List<Use> uses)
            throws InterruptedException {
        CountDownLatch busy = new CountDownLatch(uses.size());
        List<FutureTask<RuntimeException>> running = new ArrayList<>();
        for (Use use : uses) {
            FutureTask<RuntimeException> task = new FutureTask<>(() -> untilItThrows(use, busy));
            running.add(task);
            new Thread(task).start();
        }
        busy.await();
        return running;
    }

    private static RuntimeException untilItThrows(Use use, CountDownLatch busy) {
        for (int times = 0; ; times++) {
            try {
                use.once();
            } catch (RuntimeException end) {
                busy.countDown();
                return end;
            }
            if (times == USES_BEFORE) {
                busy.countDown();
            }
        }
    }
}
