package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Closed heaps and pools keep nothing scarce until Java collects them. */
class ClosedTest {
    private static final int ROUNDS = 40;
    /** Of which not {@link #ROUNDS} fit into the address space of a process. */
    private static final long LIMIT = 8L << 40;

    @TempDir
    Path folder;

    private static long descriptors() throws IOException {
        try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
            return all.count();
        }
    }

    /** Each kept two: a program that made heaps and closed them had too many files open. */
    @Test
    void whatIsClosedHasNoDescriptorsAlthoughItIsNotCollected() throws IOException {
        List<Object> kept = new ArrayList<>();
        // The first loads classes, and may open files for that.
        openAndClose(kept);
        long before = descriptors();
        for (int round = 0; round < ROUNDS; round++) {
            openAndClose(kept);
        }
        long after = descriptors();
        assertTrue(after < before + ROUNDS / 2, before + " descriptors, and " + after + " after "
                + kept.size() + " heaps and pools");
        assertTrue(kept.size() > ROUNDS);
    }

    private void openAndClose(List<Object> kept) {
        for (Medium medium : List.of(Medium.PAGES, Medium.BYTES)) {
            String path = Heaps.at(folder);
            HeapOptions options = HeapOptions.DEFAULT.medium(medium).durability(Durability.NONE);
            TransactionalHeap made = TransactionalHeap.createHeap(path, Heaps.BYTES, options);
            RadixTree tree = RadixTree.create(made);
            tree.put(new byte[] {1}, 1, 0);
            RadixTree.Cursor cursor = tree.entries();
            assertTrue(cursor.next());
            made.close();
            TransactionalHeap read = TransactionalHeap.openHeap(path, options.readOnly());
            kept.addAll(List.of(made, tree, cursor, read));
            read.close();
            assertTrue(AnyHeap.delete(path));
        }
        String path = folder.resolve("pool").toString();
        MemoryPool pool = MemoryPool.createPool(path, 1 << 20);
        pool.setLong(0, 1);
        pool.close();
        assertTrue(new java.io.File(path).delete());
        kept.add(pool);
    }

    /** The next one did not fit, as long as Java saw no reason to collect those before. */
    @Test
    void addressSpaceOfClosedHeapsIsUsedAgainOnceNobodyHasThem() {
        for (int round = 0; round < ROUNDS; round++) {
            String path = Heaps.at(folder);
            TransactionalHeap heap = TransactionalHeap.createHeap(path, Heaps.BYTES,
                    HeapOptions.DEFAULT.durability(Durability.NONE).limit(LIMIT));
            assertEquals(LIMIT, heap.limit());
            heap.close();
            assertTrue(AnyHeap.delete(path));
        }
    }
}
