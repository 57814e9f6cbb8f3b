package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
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
