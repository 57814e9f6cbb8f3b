package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A map belongs to a transaction from its first change to its end, in whatever thread it runs. */
class WaitTest {
    private static final byte[] KEY = {1};

    @TempDir
    Path folder;

    @Test
    void aChangeWaitsForTheTransactionOfAnotherThread() throws Exception {
        try (TransactionalHeap heap = Heaps.transactional(folder)) {
            RadixTree tree = RadixTree.create(heap);
            Holder holder = new Holder(heap, tree);
            FutureTask<Long> change = new FutureTask<>(() -> {
                holder.release.countDown();
                return tree.put(KEY, 2, -1);
            });
            new Thread(change).start();
            // What the first transaction put was undone before the second one looked.
            assertEquals(-1, change.get());
            assertThrows(ExecutionException.class, holder::get);
            assertEquals(2, tree.get(KEY, -1));
        }
    }

    @Test
    void aViewWaitsForTheTransactionOfAnotherThread() throws Exception {
        try (TransactionalHeap heap = Heaps.transactional(folder)) {
            RadixTree tree = RadixTree.create(heap);
            Holder holder = new Holder(heap, tree);
            holder.release.countDown();
            try (RadixTree.Cursor cursor = tree.entries()) {
                assertEquals(false, cursor.next());
            }
            assertThrows(ExecutionException.class, holder::get);
        }
    }

    @Test
    void anInterruptEndsTheWaitWithASentence() throws Exception {
        try (TransactionalHeap heap = Heaps.transactional(folder)) {
            RadixTree tree = RadixTree.create(heap);
            Holder holder = new Holder(heap, tree);
            FutureTask<Long> change = new FutureTask<>(() -> {
                Thread.currentThread().interrupt();
                return tree.put(KEY, 2, -1);
            });
            new Thread(change).start();
            Throwable failure = assertThrows(ExecutionException.class, change::get).getCause();
            assertEquals(HeapException.class, failure.getClass());
            assertTrue(failure.getMessage().contains("another transaction changes it"),
                    failure.getMessage());
            holder.release.countDown();
            assertThrows(ExecutionException.class, holder::get);
            assertEquals(-1, tree.put(KEY, 3, -1));
        }
    }

    @Test
    void virtualThreadsOnOneCarrierWaitForEachOther() throws Exception {
        Assumptions.assumeTrue(Runtime.version().feature() >= 21, "needs virtual threads");
        for (String path : ChildJvm.paths()) {
            List<String> flags = List.of("-Djdk.virtualThreadScheduler.parallelism=1",
                    "-Djdk.virtualThreadScheduler.maxPoolSize=1");
            Path mine = folder.resolve("heap-" + path);
            ChildJvm child = ChildJvm.run(folder,
                    ChildJvm.command(path, flags, Carrier.class, mine.toString()));
            assertEquals(0, child.status, child.err);
            assertEquals("100\n", child.out, child.err);
        }
    }

    /** A thread in a transaction that has put {@link #KEY}; once released, it aborts. */
    private static final class Holder {
        final CountDownLatch release = new CountDownLatch(1);
        private final FutureTask<Void> task;

        Holder(TransactionalHeap heap, RadixTree tree) throws InterruptedException {
            CountDownLatch held = new CountDownLatch(1);
            task = new FutureTask<>(() -> {
                Transaction.create(heap, () -> {
                    tree.put(KEY, 1, -1);
                    held.countDown();
                    await(release);
                    throw new IllegalStateException("undone");
                });
                return null;
            });
            new Thread(task).start();
            held.await();
        }

        Void get() throws Exception {
            return task.get();
        }
    }

    static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException failure) {
            throw new IllegalStateException(failure);
        }
    }

    /** Virtual threads that add to one entry, and let each other run in the middle. */
    static final class Carrier {
        private static final int THREADS = 100;

        private Carrier() {
        }

        public static void main(String[] arguments) throws Exception {
            ExecutorService threads = (ExecutorService) Executors.class
                    .getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
            try (TransactionalHeap heap = TransactionalHeap.createHeap(arguments[0], 16L << 20,
                    HeapOptions.DEFAULT.durability(Durability.NONE))) {
                RadixTree tree = RadixTree.create(heap);
                CountDownLatch all = new CountDownLatch(THREADS);
                List<Future<?>> running = new java.util.ArrayList<>();
                for (int thread = 0; thread < THREADS; thread++) {
                    running.add(threads.submit(() -> add(heap, tree, all)));
                }
                for (Future<?> each : running) {
                    each.get();
                }
                System.out.println(tree.get(KEY, -1));
            }
            threads.shutdown();
        }

        private static void add(TransactionalHeap heap, RadixTree tree, CountDownLatch all) {
            Transaction.create(heap, () -> {
                all.countDown();
                tree.hold();
                long value = tree.get(KEY, 0);
                // Only when all are inside, so that they wait on their one carrier.
                await(all);
                tree.put(KEY, value + 1, 0);
            });
        }
    }
}
