package com.intel.pmem.llpl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.intel.pmem.llpl.util.AutoCloseableIterator;
import com.intel.pmem.llpl.util.ConcurrentLongART;
import com.intel.pmem.llpl.util.LongART;
import com.intel.pmem.llpl.util.LongArray;
import com.intel.pmem.llpl.util.LongLinkedList;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Programs as people wrote them for LLPL, and what LLPL itself gets wrong. */
class ProgramsTest {
    private static final long CHUNK = 2L << 20;

    @TempDir
    Path folder;

    private String path(String name) {
        return folder.resolve(name).toString();
    }

    @Test
    void chunksAreAllocatedUntilNineTenthsOfTheHeapAreTaken() {
        long size = 64L << 20;
        Heap heap = Heap.createHeap(path("chunks"), size);
        List<MemoryBlock> chunks = new ArrayList<>();
        while ((chunks.size() + 1) * CHUNK < size * 9 / 10 - (8 << 20)) {
            MemoryBlock chunk = heap.allocateMemoryBlock(CHUNK, false);
            chunk.setLong(CHUNK - 8, chunks.size());
            chunks.add(chunk);
        }
        assertTrue(chunks.size() >= 20, chunks.size() + " chunks");
        for (int index = 0; index < chunks.size(); index++) {
            assertEquals(index, chunks.get(index).getLong(CHUNK - 8));
            chunks.get(index).free(false);
        }
        heap.close();
    }

    @Test
    void everyValueThatClearingRemovesIsCleaned() throws Exception {
        // One that another thread put while the first was cleaned went without, and with it what it
        // led to.
        TransactionalHeap heap = TransactionalHeap.createHeap(path("clear"), 16L << 20);
        ConcurrentLongART map = new ConcurrentLongART(heap, 1);
        map.put(new byte[] {1}, 1);
        Thread other = new Thread(() -> map.put(new byte[] {2}, 2));
        List<Long> cleaned = new ArrayList<>();
        map.clear(value -> {
            cleaned.add(value);
            if (value == 1) {
                other.start();
                while (other.isAlive() && other.getState() != Thread.State.TIMED_WAITING) {
                    Thread.onSpinWait();
                }
            }
        });
        other.join();
        assertEquals(2 - cleaned.size(), map.size());
        heap.close();
    }

    @Test
    void aRingOfBlocksIsWalkedAfterReopening() {
        PersistentHeap heap = PersistentHeap.createHeap(path("ring"), 16L << 20);
        PersistentMemoryBlock first = heap.allocateMemoryBlock(64, true);
        heap.setRoot(first.handle());
        PersistentMemoryBlock last = first;
        for (int index = 1; index < 100; index++) {
            PersistentMemoryBlock next = heap.allocateMemoryBlock(64, false);
            next.setLong(8, index);
            last.setLong(0, next.handle());
            last = next;
        }
        last.setLong(0, first.handle());
        heap.close();
        heap = PersistentHeap.openHeap(path("ring"));
        PersistentAccessor at = heap.createAccessor();
        at.handle(heap.getRoot());
        for (int index = 0; index < 100; index++) {
            assertEquals(index, at.getLong(8));
            at.handle(at.getLong(0));
        }
        assertEquals(heap.getRoot(), at.handle());
        heap.close();
    }

    @Test
    void anEmployeeIsFoundAfterARestart() {
        long id = 0;
        long name = 8;
        long bytes = Long.BYTES + Integer.BYTES + 20;
        byte[] given = "John Doe".getBytes(StandardCharsets.UTF_8);
        for (boolean whole : new boolean[] {false, true}) {
            String path = path("employees-" + whole);
            TransactionalHeap heap = TransactionalHeap.getHeap(path, 10_000_000L);
            TransactionalMemoryBlock employee = Transaction.run(heap, () -> {
                TransactionalMemoryBlock block = heap.allocateMemoryBlock(bytes);
                if (whole) {
                    block.withRange(0, bytes, (Range range) -> {
                        range.setLong(id, 12345);
                        range.setInt(name, given.length);
                        range.copyFromArray(given, 0, name + Integer.BYTES, given.length);
                    });
                } else {
                    block.setLong(id, 12345);
                    block.setInt(name, given.length);
                    block.copyFromArray(given, 0, name + Integer.BYTES, given.length);
                }
                return block;
            });
            TransactionalMemoryBlock employees = heap.allocateMemoryBlock(10 * Long.BYTES);
            heap.setRoot(employees.handle());
            employees.setLong(0, employee.handle());
            heap.close();

            TransactionalHeap again = TransactionalHeap.getHeap(path);
            TransactionalMemoryBlock all = again.memoryBlockFromHandle(again.getRoot());
            TransactionalMemoryBlock first = again.memoryBlockFromHandle(all.getLong(0));
            byte[] found = new byte[first.getInt(name)];
            first.copyToArray(name + Integer.BYTES, found, 0, found.length);
            assertArrayEquals(given, found);
            assertEquals(12345, first.getLong(id));
            again.close();
        }
    }

    @Test
    void anIndexNamesBlocksAndFreesThemWithItsEntries() throws IOException {
        String place = Files.createDirectory(folder.resolve("index")).toString();
        TransactionalHeap heap = TransactionalHeap.createHeap(place, 64L << 20);
        LongART index = new LongART(heap);
        heap.setRoot(index.handle());
        for (int number = 0; number < 500; number++) {
            byte[] key = ("employee-" + number).getBytes(StandardCharsets.US_ASCII);
            int value = number;
            Transaction.create(heap, () -> {
                long block = heap.allocateMemoryBlock(8, range -> range.setLong(0, value)).handle();
                assertEquals(0, index.put(key, block));
            });
        }
        heap.close();
        TransactionalHeap again = TransactionalHeap.openHeap(place);
        LongART found = LongART.fromHandle(again, again.getRoot());
        assertEquals(500, found.size());
        byte[] key = "employee-77".getBytes(StandardCharsets.US_ASCII);
        assertEquals(77, again.memoryBlockFromHandle(found.get(key)).getLong(0));
        found.remove(key, handle -> again.memoryBlockFromHandle(handle).free());
        assertEquals(0, found.get(key));
        found.clear(handle -> again.memoryBlockFromHandle(handle).free());
        assertEquals(0, found.size());
        assertThrows(NoSuchElementException.class, found::firstKey);
        again.close();
    }

    @Test
    void removingAnAbsentKeyOfAnIndexRemovesNothing() {
        TransactionalHeap heap = TransactionalHeap.createHeap(path("absent"), 16L << 20);
        LongART index = new LongART(heap);
        index.put(new byte[] {1, 2, 3}, 5);
        index.put(new byte[] {1, 2, 4}, 0);
        assertEquals(0, index.remove(new byte[] {1, 2, 5}, value -> {
            throw new AssertionError("the cleaner got " + value);
        }));
        assertEquals(2, index.size());
        Iterator<Long> values = index.getValueIterator();
        assertEquals(5, values.next());
        assertEquals(0, values.next());
        assertFalse(values.hasNext());
        heap.close();
    }

    @Test
    void aSharedIndexKeepsKeysThatBeginOthersAndCountsRight() throws Exception {
        TransactionalHeap heap = TransactionalHeap.createHeap(path("shared"), 64L << 20);
        ConcurrentLongART index = new ConcurrentLongART(heap, 4);
        List<Thread> threads = new ArrayList<>();
        for (int thread = 0; thread < 4; thread++) {
            int mine = thread;
            threads.add(new Thread(() -> {
                byte[] key = new byte[0];
                for (int length = 1; length <= 250; length++) {
                    key = java.util.Arrays.copyOf(key, length);
                    key[length - 1] = (byte) mine;
                    index.put(key, length);
                }
            }));
            threads.get(thread).start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        // Keys of thread 0 are all zeros; the others' first bytes differ.
        assertEquals(1000, index.size());
        assertEquals(7, index.get(new byte[] {2, 2, 2, 2, 2, 2, 2}));
        try (AutoCloseableIterator<LongART.Entry> entries = index.getEntryIterator()) {
            assertArrayEquals(new byte[] {0}, entries.next().getKey());
            index.put(new byte[] {0, 1}, 1);
            assertEquals(2, entries.next().getValue());
        }
        heap.close();
    }

    @Test
    void transactionsThatChangeASharedIndexTwiceDoNotLockEachOtherOut() throws Exception {
        TransactionalHeap heap = TransactionalHeap.createHeap(path("turns"), 16L << 20);
        ConcurrentLongART index = new ConcurrentLongART(heap, 2);
        byte[] key = {1};
        List<Thread> threads = new ArrayList<>();
        for (int thread = 0; thread < 4; thread++) {
            threads.add(new Thread(() -> {
                for (int round = 0; round < 100; round++) {
                    Transaction.create(heap, () -> {
                        index.put(key, null, (none, old) -> old + 1);
                        index.put(key, null, (none, old) -> old + 1);
                    });
                }
            }));
            threads.get(thread).start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(800, index.get(key));
        heap.close();
    }

    @Test
    void anAbortLeavesListsAndArraysAsTheyWere() {
        TransactionalHeap heap = TransactionalHeap.createHeap(path("abort"), 16L << 20);
        LongLinkedList list = new LongLinkedList(heap);
        LongArray array = new LongArray(heap, 10);
        list.addFirst(1);
        array.set(3, 4);
        assertThrows(IllegalStateException.class, () -> Transaction.create(heap, () -> {
            list.addFirst(2);
            list.add(2, 3);
            array.set(3, 5);
            throw new IllegalStateException();
        }));
        assertEquals(1, list.size());
        assertEquals(1, list.getFirst());
        assertEquals(4, array.get(3));
        heap.close();
    }
}
