package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.ConcurrentModificationException;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.RandomAccess;
import java.util.Set;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Parts of lists, and equality. */
class PartsTest {
    private static final class Undone extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    @TempDir
    Path folder;

    private ObjectHeap heap;

    @BeforeEach
    void create() {
        heap = Heaps.create(folder);
    }

    @AfterEach
    void close() {
        assertEquals("", heap.heap().check());
        heap.close();
    }

    @Test
    void aPartOfAListIsRefusedOnceAChangeThroughItWasUndone() {
        // It still counted what had been added, and cleared one element of the list too many.
        for (List<String> list : everyList()) {
            List<String> part = list.subList(1, 2);
            undone(() -> part.add("new"));
            assertThrows(ConcurrentModificationException.class, part::clear);
            assertThrows(ConcurrentModificationException.class, part::size);
            assertEquals(List.of("d", "b", "c", "a"), list);
            list.subList(1, 2).clear();
            assertEquals(List.of("d", "c", "a"), list);
        }
    }

    @Test
    void anIteratorIsRefusedOnceItsRemovalWasUndone() {
        // It had gone back by one, and came to the same element again.
        for (List<String> list : everyList()) {
            Iterator<String> each = list.iterator();
            each.next();
            undone(each::remove);
            assertThrows(ConcurrentModificationException.class, each::next);
            assertEquals(List.of("d", "b", "c", "a"), list);
        }
    }

    @Test
    void whatChangesManyElementsOfAPartIsOneTransaction() {
        // A kill in the middle of a sort left one element twice and another one nowhere.
        List<Consumer<List<String>>> changes = List.of(
                part -> part.sort(null),
                part -> part.replaceAll(element -> element + "!"),
                part -> part.removeIf(element -> element.equals("d") || element.equals("b")),
                part -> part.removeAll(List.of("d", "b")),
                part -> part.retainAll(List.of("c")),
                part -> part.addAll(List.of("x", "y")),
                List::clear,
                part -> part.subList(0, 2).sort(null));
        for (Consumer<List<String>> change : changes) {
            for (List<String> list : everyList()) {
                List<String> expected = new ArrayList<>(list);
                change.accept(expected.subList(0, 3));
                List<String> part = list.subList(0, 3);
                assertEquals(list instanceof RandomAccess, part instanceof RandomAccess);
                long before = heap.heap().statistics().commits();
                change.accept(part);
                assertEquals(before + 1, heap.heap().statistics().commits());
                assertEquals(expected, list);
                assertEquals(list.subList(0, part.size()), part);
            }
        }
    }

    @Test
    void bytesAreComparedByWhatTheyAre() {
        // Each read gives another array, so that nothing was ever what was expected.
        byte[] first = {1, 2};
        for (ConcurrentMap<String, byte[]> map : everyMap()) {
            map.put("key", first);
            assertTrue(map.containsValue(first));
            assertTrue(map.entrySet().contains(Map.entry("key", first)));
            assertFalse(map.replace("key", new byte[] {1}, new byte[] {3}));
            assertTrue(map.replace("key", map.get("key"), new byte[] {3}));
            assertFalse(map.remove("key", first));
            assertTrue(map.remove("key", new byte[] {3}));
            assertTrue(map.isEmpty());
            map.put("key", first);
            assertTrue(map.values().contains(new byte[] {1, 2}));
            assertFalse(map.values().remove(new byte[] {1}));
            assertTrue(map.values().remove(new byte[] {1, 2}));
            assertTrue(map.isEmpty());
        }
        PersistentImmutableArray<Object> array =
                PersistentImmutableArray.of(heap, first, "text", null);
        assertEquals(array, array);
        assertEquals(array, PersistentImmutableArray.of(heap, new byte[] {1, 2}, "text", null));
        assertNotEquals(array, PersistentImmutableArray.of(heap, new byte[] {1}, "text", null));
        assertEquals(array.hashCode(), array.hashCode());
        PersistentImmutableTuple2<Object, Object> tuple =
                PersistentImmutableTuple2.of(heap, first, 5);
        assertEquals(tuple, PersistentImmutableTuple2.of(heap, new byte[] {1, 2}, 5));
        assertEquals(tuple.hashCode(), tuple.hashCode());
        assertEquals(Arrays.hashCode(new Object[] {"a", 5}),
                PersistentImmutableTuple2.of(heap, "a", 5).hashCode());
        assertArrayEquals(first, (byte[]) tuple._1());
    }

    /** Each read makes another array: nothing was ever found or removed. */
    @Test
    void listsOfBytesFindThemByWhatTheyHold() {
        for (List<byte[]> list : List.of(PersistentArrayList.create(heap, Codec.BYTES),
                PersistentLinkedList.create(heap, Codec.BYTES))) {
            for (int number : new int[] {1, 2, 3, 2, 1}) {
                list.add(bytes(number));
            }
            assertTrue(list.contains(bytes(3)) && !list.contains(bytes(4)));
            assertTrue(list.containsAll(List.of(bytes(1), bytes(2))));
            assertEquals(1, list.indexOf(bytes(2)));
            assertEquals(3, list.lastIndexOf(bytes(2)));
            assertEquals(1, list.subList(2, 5).indexOf(bytes(2)));
            List<byte[]> plain = new ArrayList<>(list);
            assertEquals(list, plain);
            assertEquals(list.hashCode(), list.subList(0, 5).hashCode());
            assertEquals(list.subList(0, 2), List.of(bytes(1), bytes(2)));
            assertNotEquals(list, list.subList(0, 4));
            assertNotEquals(list.subList(0, 4), list);
            assertTrue(list.subList(1, 5).remove(bytes(1)));
            assertTrue(list.remove(bytes(2)) && !list.remove(bytes(4)));
            assertEquals(List.of(1, 3, 2), numbers(list));
            assertTrue(list.removeAll(List.of(bytes(3), bytes(4))));
            assertTrue(list.subList(0, 2).retainAll(List.of(bytes(2))));
            assertEquals(List.of(2), numbers(list));
        }
        PersistentLinkedQueue<byte[]> queue = PersistentLinkedQueue.create(heap, Codec.BYTES);
        queue.add(bytes(1));
        assertTrue(queue.contains(bytes(1)) && queue.remove(bytes(1)) && queue.isEmpty());
        PersistentLinkedList<byte[]> ends = PersistentLinkedList.create(heap, Codec.BYTES);
        ends.addAll(List.of(bytes(1), bytes(2), bytes(1)));
        assertTrue(ends.removeLastOccurrence(bytes(1)) && ends.removeFirstOccurrence(bytes(1)));
        assertEquals(List.of(2), numbers(ends));
    }

    /** What was to be kept was removed, too, and no set was equal to itself. */
    @Test
    void setsOfBytesAreWhatTheyHold() {
        for (Supplier<Set<byte[]>> empty : List.<Supplier<Set<byte[]>>>of(
                () -> PersistentHashSet.create(heap, Codec.BYTES),
                () -> PersistentTreeSet.create(heap, Codec.BYTES))) {
            Set<byte[]> set = empty.get();
            Set<byte[]> same = empty.get();
            set.addAll(List.of(bytes(1), bytes(2), bytes(3)));
            same.addAll(List.of(bytes(3), bytes(2), bytes(1)));
            assertFalse(set.retainAll(List.of(bytes(3), bytes(2), bytes(1))));
            assertEquals(set, same);
            assertEquals(set.hashCode(), same.hashCode());
            assertTrue(set.removeAll(List.of(bytes(3), bytes(4), bytes(5), bytes(6))));
            assertTrue(set.retainAll(List.of(bytes(2), bytes(3))));
            assertEquals(List.of(2), numbers(List.copyOf(set)));
            assertNotEquals(set, same);
            assertFalse(set.retainAll(same));
            assertTrue(same.removeAll(set) && !same.removeAll(set));
            assertEquals(2, same.size());
        }
    }

    /** No map with arrays of bytes was equal to itself, and its hash was another at each look. */
    @Test
    void mapsOfBytesAreWhatTheyHold() {
        for (ConcurrentMap<byte[], byte[]> map : List.<ConcurrentMap<byte[], byte[]>>of(
                PersistentHashMap.create(heap, Codec.BYTES, Codec.BYTES),
                PersistentTreeMap.create(heap, Codec.BYTES, Codec.BYTES),
                PersistentSkipListMap.create(heap, Codec.BYTES, Codec.BYTES))) {
            Map<byte[], byte[]> plain = Map.of(bytes(1), bytes(10), bytes(2), bytes(20));
            map.putAll(plain);
            assertFalse(map.values().retainAll(List.of(bytes(10), bytes(20))));
            assertEquals(map, plain);
            assertEquals(map.entrySet(), plain.entrySet());
            assertEquals(map.hashCode(), map.hashCode());
            assertEquals(map.entrySet().hashCode(), map.hashCode());
            assertNotEquals(map, Map.of(bytes(1), bytes(10), bytes(2), bytes(21)));
            assertNotEquals(map, Map.of(bytes(1), bytes(10)));
            assertNotEquals(map, Map.of("1", 10, "2", 20));
            assertFalse(map.entrySet().retainAll(List.copyOf(plain.entrySet())));
            assertTrue(map.values().removeAll(List.of(bytes(10))));
            assertFalse(map.keySet().retainAll(List.of(bytes(2))));
            assertEquals(map, Map.of(bytes(2), bytes(20)));
        }
    }

    private static byte[] bytes(int number) {
        return new byte[] {(byte) number};
    }

    private static List<Integer> numbers(List<byte[]> list) {
        return list.stream().map(bytes -> (int) bytes[0]).toList();
    }

    @Test
    void aFunctionThatGivesNothingLeavesAKeyOfNull() {
        for (ConcurrentMap<String, Object> map : List.<ConcurrentMap<String, Object>>of(
                PersistentHashMap.create(heap, Codec.STRING, heap.any()),
                PersistentTreeMap.create(heap, Codec.STRING, heap.any()))) {
            map.put("key", null);
            assertNull(map.computeIfAbsent("key", key -> null));
            assertTrue(map.containsKey("key"));
            assertNull(map.computeIfAbsent("other", key -> null));
            assertEquals(1, map.size());
            assertEquals(1L, map.computeIfAbsent("key", key -> 1L));
            assertEquals(Map.of("key", 1L), map);
        }
    }

    private List<List<String>> everyList() {
        List<List<String>> lists = List.of(PersistentArrayList.create(heap, Codec.STRING),
                PersistentLinkedList.create(heap, Codec.STRING));
        lists.forEach(list -> list.addAll(List.of("d", "b", "c", "a")));
        return lists;
    }

    private List<ConcurrentMap<String, byte[]>> everyMap() {
        return List.of(PersistentHashMap.create(heap, Codec.STRING, Codec.BYTES),
                PersistentTreeMap.create(heap, Codec.STRING, Codec.BYTES),
                PersistentSkipListMap.create(heap, Codec.STRING, Codec.BYTES));
    }

    private void undone(Runnable body) {
        assertThrows(Undone.class, () -> heap.run(() -> {
            body.run();
            throw new Undone();
        }));
    }
}
