package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.ConcurrentModificationException;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.ListIterator;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CollectionsTest {
    @TempDir
    Path folder;

    private ObjectHeap heap;

    @BeforeEach
    void create() {
        heap = ObjectHeap.create(folder.resolve("heap").toString(), 64L << 20,
                HeapOptions.DEFAULT.durability(Durability.NONE));
    }

    @AfterEach
    void close() {
        assertEquals("", heap.heap().check());
        heap.close();
    }

    @Test
    void anotherCodecIsRefusedWithBothNames() {
        long map = PersistentHashMap.create(heap, Codec.STRING, Codec.LONG).handle();
        IllegalArgumentException refused = assertThrows(IllegalArgumentException.class, () ->
                PersistentHashMap.open(heap, map, Codec.STRING, Codec.INTEGER));
        assertTrue(refused.getMessage().contains("`long`"), refused.getMessage());
        assertTrue(refused.getMessage().contains("`integer`"), refused.getMessage());
        assertThrows(IllegalArgumentException.class, () ->
                PersistentTreeMap.open(heap, map, Codec.STRING, Codec.LONG));
        assertSame(PersistentHashMap.open(heap, map, Codec.STRING, Codec.LONG),
                heap.object(map));
    }

    @Test
    void aCodecOfTheProgramIsNeededToOpen() {
        Codec<Character> own = Codec.of("own", Codec.CHARACTER::encode, Codec.CHARACTER::decode);
        heap.directory().put("letters", PersistentArrayList.create(heap, own));
        heap.directory().get("letters", PersistentArrayList.class).addAll(List.of('a', 'b'));
        long handle = heap.directory().get("letters", PersistentArrayList.class).handle();
        reopen();
        IllegalStateException refused = assertThrows(IllegalStateException.class, () ->
                heap.directory().get("letters", PersistentArrayList.class).size());
        assertTrue(refused.getMessage().contains("`own`"), refused.getMessage());
        // What it leads to nobody can tell, so that nothing may be freed.
        assertThrows(IllegalStateException.class, heap::collect);
        assertEquals(List.of('a', 'b'), PersistentArrayList.open(heap, handle, own));
        System.gc();
        assertEquals(List.of('a', 'b'), heap.directory().get("letters", Object.class));
        heap.collect();
    }

    @Test
    void aHandleOfNothingIsRefusedWithASentence() {
        IllegalArgumentException refused = assertThrows(IllegalArgumentException.class,
                () -> PersistentArrayList.open(heap, 0, Codec.LONG));
        assertTrue(refused.getMessage().contains("PersistentArrayList"), refused.getMessage());
    }

    @Test
    void aListCanBeAddedToItself() {
        List<Long> expected = new ArrayList<>(List.of(1L, 2L));
        expected.addAll(expected);
        expected.addAll(1, expected);
        for (List<Long> list : List.of(PersistentArrayList.create(heap, Codec.LONG),
                PersistentLinkedList.create(heap, Codec.LONG))) {
            list.addAll(List.of(1L, 2L));
            assertTrue(list.addAll(list));
            assertTrue(list.addAll(1, list));
            assertEquals(expected, list);
        }
    }

    @Test
    void aConditionThatChangesTheListRemovesNothing() {
        // What the condition took away was freed a second time.
        PersistentArrayList<Long> list = PersistentArrayList.create(heap, Codec.LONG);
        List<Long> numbers = List.of(1L, 2L, 3L, 4L, 5L, 6L);
        list.addAll(numbers);
        assertThrows(ConcurrentModificationException.class, () -> list.removeIf(each -> {
            if (each == 4) {
                list.remove(list.size() - 1);
            }
            return each < 3;
        }));
        assertEquals(numbers, list);
        assertTrue(list.removeIf(each -> each % 2 == 0 && list.size() == 6));
        assertEquals(List.of(1L, 3L, 5L), list);
        assertEquals("", heap.heap().check());
    }

    @Test
    void whatChangesManyEntriesThroughAViewIsOneTransaction() {
        PersistentTreeMap<Long, Long> map =
                PersistentTreeMap.create(heap, Codec.LONG, Codec.LONG);
        Map<Long, Long> before = new TreeMap<>();
        for (long key = 0; key < 10; key++) {
            before.put(key, key);
        }
        map.putAll(before);
        Predicate<Object> failing = each -> {
            if (each.equals(7L)) {
                throw new IllegalStateException("in the middle");
            }
            return true;
        };
        Collection<Long> others = new ArrayList<>() {
            private static final long serialVersionUID = 1L;

            @Override
            public boolean contains(Object element) {
                return failing.test(element);
            }
        };
        List<Runnable> changes = List.of(
                () -> map.keySet().removeIf(failing),
                () -> map.values().removeIf(failing),
                () -> map.entrySet().removeIf(entry -> failing.test(entry.getKey())),
                () -> map.values().removeAll(others));
        for (Runnable change : changes) {
            assertThrows(IllegalStateException.class, change::run);
            assertEquals(before, map);
        }
    }

    @Test
    void aKeyOutsideAPartOfAMapIsNotComputed() {
        PersistentTreeMap<Long, Long> map =
                PersistentTreeMap.create(heap, Codec.LONG, Codec.LONG);
        map.put(5L, 5L);
        assertNull(map.headMap(5L).computeIfPresent(5L, (key, value) -> value + 1));
        assertEquals(5L, map.get(5L));
    }

    @Test
    void collectionsOfCollectionsAreFoundAgain() {
        PersistentTreeMap<String, Object> root =
                PersistentTreeMap.create(heap, Codec.STRING, heap.any());
        heap.directory().put("root", root);
        for (Collection<Object> each : everyCollection()) {
            each.add("element");
            root.put(each.getClass().getSimpleName(), each);
        }
        root.put("itself", root);
        root.put("nothing", null);
        Object list = root.get("PersistentArrayList");
        assertSame(list, root.get("PersistentArrayList"));
        reopen();
        Map<?, ?> found = heap.directory().get("root", PersistentTreeMap.class);
        assertSame(found, found.get("itself"));
        assertNull(found.get("nothing"));
        assertTrue(found.containsKey("nothing"));
        for (Collection<Object> each : everyCollection()) {
            Collection<?> again = (Collection<?>) found.get(each.getClass().getSimpleName());
            assertEquals(List.of("element"), new ArrayList<>(again));
        }
    }

    @Test
    void whatATransactionMadeIsRefusedOnceThatIsUndone() {
        List<Collection<Object>> kept = new ArrayList<>();
        List<Iterator<Object>> iterators = new ArrayList<>();
        assertThrows(Undone.class, () -> heap.run(() -> {
            for (Collection<Object> each : everyCollection()) {
                each.add("element");
                kept.add(each);
                iterators.add(each.iterator());
            }
            throw new Undone();
        }));
        for (int index = 0; index < kept.size(); index++) {
            Collection<Object> each = kept.get(index);
            assertThrows(IllegalStateException.class, each::size);
            assertThrows(IllegalStateException.class, () -> each.add("another"));
            Iterator<Object> iterator = iterators.get(index);
            assertThrows(IllegalStateException.class, () -> {
                assertTrue(iterator.hasNext());
                iterator.next();
                iterator.remove();
            });
        }
    }

    @Test
    void anIteratorOverWhatWasUndoneTouchesNothing() {
        PersistentLinkedList<String> list = PersistentLinkedList.create(heap, Codec.STRING);
        list.add("first");
        List<ListIterator<String>> made = new ArrayList<>();
        assertThrows(Undone.class, () -> heap.run(() -> {
            list.add("second");
            ListIterator<String> at = list.listIterator(1);
            at.next();
            made.add(at);
            throw new Undone();
        }));
        // What was counted in Java is what the iterator saw; what lies in the heap is not.
        assertThrows(ConcurrentModificationException.class, made.get(0)::remove);
        list.add("third");
        ListIterator<String> stale = made.get(0);
        assertThrows(ConcurrentModificationException.class, stale::remove);
        assertThrows(ConcurrentModificationException.class, () -> stale.set("wrong"));
        assertThrows(ConcurrentModificationException.class, stale::previous);
        assertEquals(List.of("first", "third"), list);
    }

    @Test
    void functionsOfMapsRunWhileNoOtherThreadChangesTheMap() throws InterruptedException {
        for (ConcurrentMap<String, Long> map : everyMap()) {
            inThreads(4, thread -> {
                for (int step = 0; step < 200; step++) {
                    map.merge("sum", 1L, Long::sum);
                    map.compute("key" + step % 7, (key, old) -> old == null ? 1 : old + 1);
                    map.putIfAbsent(thread + "/" + step, (long) step);
                }
            });
            assertEquals(800, map.get("sum"));
            assertEquals(800, map.entrySet().stream().filter(entry ->
                    entry.getKey().startsWith("key")).mapToLong(Map.Entry::getValue).sum());
            assertEquals(808, map.size());
        }
    }

    @Test
    void readersBesideATransactionSeeWholeEntries() throws InterruptedException {
        for (ConcurrentMap<String, Long> map : everyMap()) {
            map.put("always", -1L);
            inThreads(3, thread -> {
                for (int count = 0; count < 300; count++) {
                    int step = count;
                    String key = "key" + step % 10;
                    if (thread > 0) {
                        assertEquals(-1L, map.get("always"));
                        Long value = map.get(key);
                        assertTrue(value == null || value % 10 == step % 10);
                    } else if (step % 3 == 0) {
                        undone(() -> map.put(key, step % 10 + 10L));
                    } else if (map.put(key, (long) step) != null) {
                        map.remove(key);
                    }
                }
            });
            assertEquals(-1L, map.get("always"));
        }
    }

    @Test
    void everyElementOfAQueueIsTakenByOneThread() throws InterruptedException {
        PersistentLinkedQueue<Long> queue = PersistentLinkedQueue.create(heap, Codec.LONG);
        for (long element = 0; element < 400; element++) {
            queue.add(element);
        }
        List<List<Long>> taken = List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        inThreads(3, thread -> {
            for (Long next = queue.poll(); next != null; next = queue.poll()) {
                taken.get(thread).add(next);
                undone(queue::poll);
            }
        });
        Set<Long> all = new HashSet<>();
        taken.forEach(all::addAll);
        assertEquals(400, all.size());
        assertEquals(400, taken.stream().mapToInt(List::size).sum());
    }

    @Test
    void aTreeMapsIteratorShowsTheMomentItWasMadeAt() {
        PersistentTreeMap<Long, Long> map = PersistentTreeMap.create(heap, Codec.LONG, Codec.LONG);
        for (long key = 0; key < 100; key++) {
            map.put(key, key);
        }
        Iterator<Map.Entry<Long, Long>> then = map.entrySet().iterator();
        map.replaceAll((key, value) -> value + 1000);
        map.keySet().removeIf(key -> key % 2 == 0);
        for (long key = 0; key < 100; key++) {
            assertEquals(Map.entry(key, key), then.next());
        }
        assertFalse(then.hasNext());
        assertEquals(50, map.size());
    }

    @Test
    void iteratorsOfAStrictHeapReadWhatTheyKeep() {
        // What an iterator of one moment keeps from being used again was refused as freed.
        HeapOptions strict = HeapOptions.DEFAULT.durability(Durability.NONE).strict();
        try (ObjectHeap objects =
                ObjectHeap.create(folder.resolve("strict").toString(), 16L << 20, strict)) {
            List<Map<String, Long>> maps = List.of(
                    PersistentTreeMap.create(objects, Codec.STRING, Codec.LONG),
                    PersistentHashMap.create(objects, Codec.STRING, Codec.LONG),
                    PersistentSkipListMap.create(objects, Codec.STRING, Codec.LONG));
            for (Map<String, Long> map : maps) {
                map.putAll(Map.of("a", 1L, "b", 2L, "c", 3L));
                Iterator<Map.Entry<String, Long>> entries = map.entrySet().iterator();
                map.replaceAll((key, value) -> value + 10);
                int seen = 0;
                while (entries.hasNext()) {
                    long value = entries.next().getValue();
                    assertTrue(value < 20, value + " is no value of the map");
                    map.remove("c");
                    seen++;
                }
                assertTrue(seen >= 2, seen + " entries");
                assertEquals(Map.of("a", 11L, "b", 12L), map);
            }
            assertEquals(3, objects.collect().keptObjects());
            assertEquals("", objects.heap().check());
        }
    }

    @Test
    void nullIsRefusedUnlessTheCodecTakesIt() {
        PersistentArrayList<String> list = PersistentArrayList.create(heap, Codec.STRING);
        assertThrows(NullPointerException.class, () -> list.addAll(Arrays.asList("a", null)));
        assertEquals(List.of(), list);
        PersistentHashMap<Object, Object> any =
                PersistentHashMap.create(heap, heap.any(), heap.any());
        any.put(null, null);
        assertTrue(any.containsKey(null));
        assertNull(any.put(null, "value"));
        assertEquals("value", any.remove(null));
    }

    @Test
    void collectingGarbageKeepsAllOfACollectionAndNothingElse() {
        for (Collection<Object> each : everyCollection()) {
            // The types stay.
            assertTrue(each.isEmpty());
        }
        everyMap();
        reopen();
        heap.collect();
        long live = heap.heap().statistics().live();
        List<Object> inside = new ArrayList<>();
        for (long element = 0; element < 200; element++) {
            inside.add(element);
        }
        for (Collection<Object> each : everyCollection()) {
            each.addAll(inside);
            PersistentArrayList<String> other = PersistentArrayList.create(heap, Codec.STRING);
            other.add("inside");
            each.add(other);
            heap.directory().put(each.getClass().getSimpleName(), each);
        }
        for (ConcurrentMap<String, Long> map : everyMap()) {
            inside.forEach(element -> map.put("key" + element, (Long) element));
            heap.directory().put(map.getClass().getSimpleName(), map);
        }
        List<String> names = heap.directory().names();
        reopen();
        long whole = heap.heap().statistics().live();
        assertEquals(0, heap.collect().freedBlocks());
        assertEquals(whole, heap.heap().statistics().live());
        for (String name : names) {
            Object found = heap.directory().get(name, Object.class);
            if (found instanceof Collection) {
                List<Object> elements = new ArrayList<>((Collection<?>) found);
                assertTrue(elements.containsAll(inside));
                assertTrue(elements.remove(List.of("inside")));
                assertEquals(200, elements.size());
            } else {
                assertEquals(200, ((Map<?, ?>) found).size());
            }
            heap.directory().remove(name);
        }
        reopen();
        heap.collect();
        assertEquals(live, heap.heap().statistics().live());
    }

    @Test
    void iteratorsThatNobodyFinishedDoNotFillTheHeap() {
        // What they might have shown was not used again until Java happened to collect garbage.
        try (ObjectHeap small = ObjectHeap.create(folder.resolve("small").toString(), 12L << 20,
                HeapOptions.DEFAULT.durability(Durability.NONE))) {
            PersistentTreeMap<Long, byte[]> map =
                    PersistentTreeMap.create(small, Codec.LONG, Codec.BYTES);
            byte[] value = new byte[1 << 20];
            for (long key = 0; key < 4; key++) {
                map.put(key, value);
            }
            for (long round = 0; round < 12; round++) {
                map.keySet().iterator().next();
                map.put(round % 4, value);
            }
            assertEquals(4, map.size());
        }
    }

    @Test
    void anIteratorSkipsObjectsThatWereCollectedMeanwhile() {
        for (ConcurrentMap<Object, Object> map : List.of(
                PersistentHashMap.create(heap, heap.any(), heap.any()),
                PersistentTreeMap.create(heap, heap.any(), heap.any()),
                PersistentSkipListMap.create(heap, heap.any(), heap.any()))) {
            heap.run(() -> {
                for (long key = 0; key < 300; key++) {
                    map.put(key, PersistentArrayList.create(heap, Codec.STRING));
                }
            });
            Iterator<Map.Entry<Object, Object>> entries = map.entrySet().iterator();
            entries.next();
            map.clear();
            System.gc();
            heap.collect();
            map.put("other", "text");
            int left = 0;
            while (entries.hasNext()) {
                entries.next().getValue();
                left++;
            }
            assertTrue(left <= 2, left + " entries are shown of a map that was cleared");
        }
    }

    private void reopen() {
        String path = folder.resolve("heap").toString();
        heap.close();
        heap = ObjectHeap.open(path, HeapOptions.DEFAULT.durability(Durability.NONE));
    }

    private List<Collection<Object>> everyCollection() {
        return List.of(PersistentArrayList.create(heap, heap.any()),
                PersistentLinkedList.create(heap, heap.any()),
                PersistentLinkedQueue.create(heap, heap.any()),
                PersistentHashSet.create(heap, heap.any()),
                PersistentTreeSet.create(heap, heap.any()));
    }

    private List<ConcurrentMap<String, Long>> everyMap() {
        return List.of(PersistentHashMap.create(heap, Codec.STRING, Codec.LONG),
                PersistentTreeMap.create(heap, Codec.STRING, Codec.LONG),
                PersistentSkipListMap.create(heap, Codec.STRING, Codec.LONG));
    }

    private void undone(Supplier<?> body) {
        assertThrows(Undone.class, () -> heap.run(() -> {
            body.get();
            throw new Undone();
        }));
    }

    private interface Body {
        void run(int thread);
    }

    private static void inThreads(int count, Body body) throws InterruptedException {
        List<Throwable> failures = java.util.Collections.synchronizedList(new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            int thread = number;
            threads.add(new Thread(() -> {
                try {
                    body.run(thread);
                } catch (Throwable failure) {
                    failures.add(failure);
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(List.of(), failures);
    }

    private static final class Undone extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }
}
