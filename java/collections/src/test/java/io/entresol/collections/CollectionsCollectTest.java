package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.heap.HeapStatistics;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Garbage collection of heaps with collections in them. */
final class CollectionsCollectTest {
    private static final int COUNT = 700;

    @TempDir
    Path folder;

    @Test
    void collectionsKeepAllThatTheyHoldAndLeaveNothingBehind() {
        HeapStatistics before;
        try (ObjectHeap objects = Heaps.create(folder)) {
            fill(objects, 1);
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            clear(objects);
        }
        // The types are known from here on.
        try (ObjectHeap objects = Heaps.open(folder)) {
            objects.collect();
            before = objects.heap().statistics();
            fill(objects, COUNT);
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            Collected collected = objects.collect();
            assertEquals(0, objects.collect().freedBlocks(), collected.toString());
            check(objects);
            assertEquals("", objects.heap().check());
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            check(objects);
            clear(objects);
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            Collected collected = objects.collect();
            HeapStatistics after = objects.heap().statistics();
            assertEquals(0, collected.keptObjects());
            assertEquals(before.live(), after.live(), collected.toString());
            assertEquals(before.liveBytes(), after.liveBytes(), collected.toString());
            assertEquals("", objects.heap().check());
        }
    }

    private static void fill(ObjectHeap objects, int count) {
        Codec<Object> any = objects.any();
        Codec<PersistentLong> longs = objects.reference(PersistentLong.class);
        objects.run(() -> {
            ObjectDirectory directory = objects.directory();
            directory.put("array list", PersistentArrayList.create(objects, any));
            directory.put("linked list", PersistentLinkedList.create(objects, longs));
            directory.put("queue", PersistentLinkedQueue.create(objects, any));
            directory.put("hash set", PersistentHashSet.create(objects, any));
            directory.put("tree set", PersistentTreeSet.create(objects, Codec.STRING));
            directory.put("hash", PersistentHashMap.create(objects, any, any));
            directory.put("tree", PersistentTreeMap.create(objects, Codec.LONG, longs));
            directory.put("skip", PersistentSkipListMap.create(objects, Codec.LONG, any));
            for (String name : directory.names()) {
                Object holder = directory.get(name, Object.class);
                for (long each = 0; each < count; each++) {
                    add(objects, holder, name, each);
                }
            }
            collection(objects, "array list").add(collection(objects, "array list"));
        });
    }

    @SuppressWarnings("unchecked")
    private static void add(ObjectHeap objects, Object holder, String name, long each) {
        Object value = name.equals("tree set")
                ? "text " + each : PersistentLong.of(objects, each);
        if (holder instanceof Map) {
            ((Map<Object, Object>) holder).put(each, value);
        } else {
            ((Collection<Object>) holder).add(value);
        }
    }

    private static void check(ObjectHeap objects) {
        for (String name : List.of("array list", "linked list", "queue")) {
            long next = 0;
            for (Object each : collection(objects, name)) {
                if (next < COUNT) {
                    assertEquals(next++, ((PersistentLong) each).longValue(), name);
                } else {
                    assertSame(collection(objects, name), each, name);
                }
            }
            assertEquals(COUNT, next, name);
        }
        long sum = 0;
        for (Object each : collection(objects, "hash set")) {
            sum += ((PersistentLong) each).longValue();
        }
        assertEquals((COUNT - 1) * COUNT / 2, sum);
        assertEquals(COUNT, collection(objects, "tree set").size());
        assertTrue(collection(objects, "tree set").contains("text 5"));
        for (String name : List.of("hash", "tree", "skip")) {
            Map<?, ?> map = objects.directory().get(name, Map.class);
            assertEquals(COUNT, map.size(), name);
            for (long each = 0; each < COUNT; each++) {
                assertEquals(each, ((PersistentLong) map.get(each)).longValue(), name);
            }
        }
    }

    private static void clear(ObjectHeap objects) {
        objects.directory().names().forEach(objects.directory()::remove);
    }

    @SuppressWarnings("unchecked")
    private static Collection<Object> collection(ObjectHeap objects, String name) {
        return objects.directory().get(name, Collection.class);
    }
}
