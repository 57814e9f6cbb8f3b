package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RadixTreeTest {
    private static final long SEED = Long.getLong("entresol.seed", 7);

    @TempDir
    Path folder;

    @Test
    void removingAnAbsentKeyRemovesNothing() {
        try (TransactionalHeap heap = Heaps.transactional(folder)) {
            RadixTree tree = RadixTree.create(heap);
            tree.put(new byte[] {1, 2, 3, 4}, 5, -1);
            tree.put(new byte[] {1, 2, 9, 4}, 6, -1);
            assertEquals(-1, tree.remove(new byte[] {1, 2, 3, 5}, -1));
            assertEquals(-1, tree.remove(new byte[] {1, 2}, -1));
            assertEquals(2, tree.size());
            assertEquals(5, tree.get(new byte[] {1, 2, 3, 4}, -1));
        }
    }

    @Test
    void zeroIsAValueAndAbsentIsNot() {
        try (PersistentHeap heap = Heaps.persistent(folder)) {
            RadixTree tree = RadixTree.create(heap);
            assertEquals(-1, tree.put(new byte[] {7}, 0, -1));
            assertEquals(0, tree.put(new byte[] {7}, 0, -1));
            assertTrue(tree.contains(new byte[] {7}));
            assertFalse(tree.contains(new byte[] {8}));
        }
    }

    @Test
    void anAbortUndoesChangesOfTheMapAndOfBlocksTogether() {
        try (TransactionalHeap heap = Heaps.transactional(folder)) {
            RadixTree tree = RadixTree.create(heap);
            TransactionalMemoryBlock block = heap.allocateMemoryBlock(8);
            tree.put(new byte[] {1}, 1, 0);
            assertThrows(IllegalStateException.class, () -> Transaction.create(heap, () -> {
                tree.put(new byte[] {1}, 2, 0);
                tree.put(new byte[] {2}, 2, 0);
                block.setLong(0, 2);
                assertEquals(2, tree.size());
                throw new IllegalStateException();
            }));
            assertEquals(1, tree.get(new byte[] {1}, 0));
            assertEquals(1, tree.size());
            assertEquals(0, block.getLong(0));
        }
    }

    /** The map was there, and refused as freed until it was opened once more. */
    @Test
    void aMapWhoseFreeIsUndoneIsThere() {
        try (TransactionalHeap heap = Heaps.transactional(folder)) {
            RadixTree tree = RadixTree.create(heap);
            tree.put(new byte[] {1}, 1, 0);
            Runnable undone = () -> {
                tree.free();
                assertThrows(IllegalStateException.class, tree::size);
                throw new IllegalArgumentException("undo");
            };
            assertThrows(IllegalArgumentException.class, () -> Transaction.create(heap, undone));
            assertEquals(1, tree.get(new byte[] {1}, 0));
            Transaction.create(heap, () -> {
                assertThrows(IllegalArgumentException.class,
                        () -> Transaction.create(heap, undone));
                tree.put(new byte[] {2}, 2, 0);
            });
            assertEquals(2, tree.size());
            Transaction.create(heap, (Runnable) tree::free);
            assertThrows(IllegalStateException.class, tree::size);
            assertEquals("", heap.check());
        }
    }

    @Test
    void holdingAMapChangesNothing() throws Exception {
        // The key that was named was entered and removed again, which others saw, and committed.
        try (TransactionalHeap heap = Heaps.transactional(folder)) {
            RadixTree tree = RadixTree.create(heap);
            tree.put(new byte[] {1}, 1, 0);
            FutureTask<Void> counting = new FutureTask<>(() -> {
                for (int count = 0; count < 200_000; count++) {
                    assertEquals(1, tree.size());
                }
            }, null);
            new Thread(counting).start();
            long records = heap.statistics().records();
            do {
                Transaction.create(heap, (Runnable) tree::hold);
            } while (!counting.isDone());
            counting.get();
            assertEquals(records, heap.statistics().records());
        }
    }

    @Test
    void itDoesWhatATreeMapDoes() {
        System.out.println("maps: -Dentresol.seed=" + SEED);
        Random random = new Random(SEED);
        TreeMap<byte[], Long> model = new TreeMap<>(Arrays::compareUnsigned);
        long handle;
        // Thousands of commits; that they are durable is the matter of other tests.
        HeapOptions quick = HeapOptions.DEFAULT.durability(Durability.BUFFERED);
        try (TransactionalHeap heap =
                TransactionalHeap.createHeap(Heaps.at(folder), Heaps.BYTES, quick)) {
            RadixTree tree = RadixTree.create(heap);
            handle = tree.handle();
            for (int step = 0; step < 4000; step++) {
                byte[] key = key(random);
                long value = random.nextInt(3) == 0 ? 0 : random.nextLong();
                Long before;
                switch (random.nextInt(4)) {
                    case 0:
                        before = model.remove(key);
                        assertEquals(before == null ? -1 : before, tree.remove(key, -1));
                        break;
                    case 1:
                        before = model.get(key);
                        assertEquals(before == null ? -1 : before, tree.get(key, -1));
                        break;
                    default:
                        before = model.put(key, value);
                        assertEquals(before == null ? -1 : before, tree.put(key, value, -1));
                }
                if (step % 200 == 0) {
                    compare(model, tree, random);
                }
            }
        }
        try (TransactionalHeap heap = TransactionalHeap.openHeap(Heaps.at(folder))) {
            compare(model, RadixTree.open(heap, handle), random);
            assertEquals("", heap.check());
        }
    }

    /** Short keys of few different bytes, so that many begin others; sometimes a long one. */
    @Test
    void childrenAreFoundInNodesOfEverySize() {
        try (TransactionalHeap heap = Heaps.transactional(folder)) {
            for (int children : new int[] {2, 4, 5, 16, 17, 48, 49, 256}) {
                RadixTree tree = RadixTree.create(heap);
                for (int child = 0; child < children; child++) {
                    tree.put(branch(child), child, -1);
                }
                tree.put(new byte[] {3}, 300, -1);
                for (int child = 0; child < 256; child++) {
                    assertEquals(child < children ? child : -1, tree.get(branch(child), -1));
                    assertEquals(child < children, tree.contains(branch(child)));
                }
                assertEquals(300, tree.get(new byte[] {3}, -1));
                assertEquals(-1, tree.get(new byte[] {3, 0}, -1));
                tree.remove(branch(1), -1);
                assertEquals(-1, tree.get(branch(1), -1));
            }
        }
    }

    private static byte[] branch(int child) {
        return new byte[] {3, (byte) (child * 37), 1};
    }

    @Test
    void keysThatPartFarBehindTheirBeginningAreFound() {
        try (TransactionalHeap heap = Heaps.transactional(folder)) {
            RadixTree tree = RadixTree.create(heap);
            byte[] one = new byte[70_000];
            byte[] other = one.clone();
            other[69_998] = 1;
            byte[] absent = one.clone();
            absent[10] = 1;
            tree.put(one, 1, -1);
            tree.put(other, 2, -1);
            assertEquals(1, tree.get(one, -1));
            assertEquals(2, tree.get(other, -1));
            assertEquals(-1, tree.get(absent, -1));
            assertEquals(-1, tree.get(Arrays.copyOf(one, 69_998), -1));
        }
    }

    @Test
    void aKeyThatStaysIsFoundBesideChangesOfItsNeighbours() throws InterruptedException {
        try (TransactionalHeap heap = TransactionalHeap.createHeap(Heaps.at(folder), Heaps.BYTES,
                HeapOptions.DEFAULT.durability(Durability.NONE))) {
            RadixTree tree = RadixTree.create(heap);
            for (int key = 0; key < 256; key += 8) {
                tree.put(branch(key), key, -1);
            }
            AtomicBoolean done = new AtomicBoolean();
            AtomicReference<String> wrong = new AtomicReference<>();
            Thread reader = new Thread(() -> {
                for (int key = 0; !done.get() && wrong.get() == null; key = (key + 8) & 255) {
                    long found = tree.get(branch(key), -1);
                    if (found != key || !tree.contains(branch(key))) {
                        wrong.set(key + " was " + found);
                    }
                }
            });
            reader.start();
            Random random = new Random(SEED);
            for (int change = 0; change < 20_000; change++) {
                int key = random.nextInt(256) | 1;
                if (random.nextBoolean()) {
                    tree.put(branch(key), -5, -1);
                    // What a removed node leaves behind soon belongs to a block.
                    heap.allocateMemoryBlock(160, range -> range.setMemory((byte) 7, 0, 160)).free();
                } else {
                    tree.remove(branch(key), -1);
                }
            }
            done.set(true);
            reader.join();
            assertNull(wrong.get(), "-Dentresol.seed=" + SEED);
        }
    }

    private static byte[] key(Random random) {
        byte[] key = new byte[random.nextInt(20) == 0 ? random.nextInt(300) : random.nextInt(5)];
        for (int index = 0; index < key.length; index++) {
            key[index] = (byte) (random.nextInt(4) * 85);
        }
        return key;
    }

    private static void compare(TreeMap<byte[], Long> model, RadixTree tree, Random random) {
        assertEquals(model.size(), tree.size());
        same(model, tree.entries());
        same(model.descendingMap(), tree.range(null, false, null, false, true));
        byte[] lower = key(random);
        byte[] upper = key(random);
        if (Arrays.compareUnsigned(lower, upper) <= 0) {
            NavigableMap<byte[], Long> part = model.subMap(lower, true, upper, false);
            same(part, tree.range(lower, true, upper, false, false));
            same(part.descendingMap(), tree.range(lower, true, upper, false, true));
        }
    }

    private static void same(Map<byte[], Long> expected, RadixTree.Cursor cursor) {
        for (Map.Entry<byte[], Long> entry : expected.entrySet()) {
            assertTrue(cursor.next());
            assertArrayEquals(entry.getKey(), cursor.key());
            assertEquals(entry.getValue(), cursor.value());
        }
        assertFalse(cursor.next());
    }
}
