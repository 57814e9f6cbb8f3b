package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.entresol.heap.Kills;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A JVM that changes a list, a queue and two maps in each transaction is killed again and again;
 * all of them are found in the state after one transaction, which is the last acknowledged one or a
 * later one.
 */
class CollectionsKillTest {
    private static final long LENGTH = 150;
    private static final long KEYS = 40;
    private static final long COUNT = -1;

    @TempDir
    Path folder;

    @Test
    void collectionsAreFoundAsOneTransactionLeftThem() throws Exception {
        String path = folder.resolve("heap").toString();
        try (ObjectHeap heap = ObjectHeap.create(path, 16L << 20)) {
            new Contents(heap).create();
        }
        new Kills(43).everyCommittedIsFound(Child.class, path, () -> {
            try (ObjectHeap heap = ObjectHeap.open(path)) {
                assertEquals("", heap.heap().check());
                return new Contents(heap).check();
            }
        });
    }

    /** What the heap holds: all of it follows from the number of the last transaction. */
    private static final class Contents {
        private final ObjectHeap heap;

        Contents(ObjectHeap heap) {
            this.heap = heap;
        }

        void create() {
            ObjectDirectory directory = heap.directory();
            heap.run(() -> {
                directory.put("list", PersistentArrayList.create(heap, Codec.LONG));
                directory.put("queue", PersistentLinkedQueue.create(heap, Codec.LONG));
                directory.put("hash", PersistentHashMap.create(heap, Codec.LONG, Codec.LONG));
                directory.put("skip", PersistentSkipListMap.create(heap, Codec.LONG, Codec.LONG));
            });
        }

        /** Transaction number {@code count}. */
        void step(long count) {
            heap.run(() -> {
                list().add(count);
                queue().add(count);
                if (count > LENGTH) {
                    list().remove(0);
                    queue().poll();
                }
                hash().put(COUNT, count);
                hash().put(count % KEYS, count);
                skip().put(count, count);
                skip().remove(count - KEYS);
            });
        }

        long count() {
            return hash().getOrDefault(COUNT, 0L);
        }

        long check() {
            long count = count();
            List<Long> row = new ArrayList<>();
            for (long each = Math.max(1, count - LENGTH + 1); each <= count; each++) {
                row.add(each);
            }
            assertEquals(row, list());
            assertEquals(row, new ArrayList<>(queue()));
            Map<Long, Long> hashed = new HashMap<>(Map.of(COUNT, count));
            Map<Long, Long> sorted = new HashMap<>();
            for (long each = Math.max(1, count - KEYS + 1); each <= count; each++) {
                hashed.put(each % KEYS, each);
                sorted.put(each, each);
            }
            assertEquals(hashed, hash());
            assertEquals(sorted, skip());
            return count;
        }

        @SuppressWarnings("unchecked")
        private PersistentArrayList<Long> list() {
            return heap.directory().get("list", PersistentArrayList.class);
        }

        @SuppressWarnings("unchecked")
        private PersistentLinkedQueue<Long> queue() {
            return heap.directory().get("queue", PersistentLinkedQueue.class);
        }

        @SuppressWarnings("unchecked")
        private PersistentHashMap<Long, Long> hash() {
            return heap.directory().get("hash", PersistentHashMap.class);
        }

        @SuppressWarnings("unchecked")
        private PersistentSkipListMap<Long, Long> skip() {
            return heap.directory().get("skip", PersistentSkipListMap.class);
        }
    }

    /** Goes on where the last one was killed; says the number of each committed transaction. */
    static final class Child {
        private Child() {
        }

        public static void main(String[] arguments) {
            Contents contents = new Contents(ObjectHeap.open(arguments[0]));
            for (long count = contents.count() + 1; true; count++) {
                contents.step(count);
                System.out.println(count);
                System.out.flush();
            }
        }
    }
}
