package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.reflect.InvocationTargetException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.ConcurrentModificationException;
import java.util.Deque;
import java.util.Iterator;
import java.util.LinkedList;
import java.util.List;
import java.util.ListIterator;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.RandomAccess;
import java.util.function.Consumer;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Lists backwards, by their own names and by those that Java has for them from 21 on. */
class ReversedTest {
    private static final long SEED = seed();
    private static final int STEPS = 400;
    /** The first Java whose lists and deques are sequenced collections. */
    private static final int SEQUENCED = 21;

    @TempDir
    Path folder;

    private ObjectHeap heap;
    private PersistentArrayList<String> array;
    private PersistentLinkedList<String> linked;

    private static long seed() {
        String given = System.getenv("ENTRESOL_SEED");
        return given == null ? 21 : Long.parseLong(given);
    }

    @BeforeEach
    void create() {
        heap = Heaps.create(folder);
        array = PersistentArrayList.create(heap, Codec.STRING);
        linked = PersistentLinkedList.create(heap, Codec.STRING);
    }

    @AfterEach
    void close() {
        assertEquals("", heap.heap().check());
        heap.close();
    }

    /** What Java calls by the name of an interface. */
    private static Object called(String type, Object object, String method) throws Exception {
        try {
            return Class.forName("java.util." + type).getMethod(method).invoke(object);
        } catch (InvocationTargetException failure) {
            if (failure.getCause() instanceof RuntimeException mistake) {
                throw mistake;
            }
            throw failure;
        }
    }

    /** A linked list could not be asked as a sequence: both of its interfaces had an answer. */
    @Test
    void listsAreSequencedCollectionsWhereJavaHasThem() throws Exception {
        if (Runtime.version().feature() < SEQUENCED) {
            return;
        }
        for (List<String> list : List.of(array, linked)) {
            assertThrows(NoSuchElementException.class,
                    () -> called("SequencedCollection", list, "getFirst"));
            assertThrows(NoSuchElementException.class,
                    () -> called("SequencedCollection", list, "removeLast"));
            list.addAll(List.of("a", "b", "c"));
            Object backwards = called("SequencedCollection", list, "reversed");
            assertEquals(List.of("c", "b", "a"), backwards);
            assertEquals(List.of("c", "b", "a"), called("List", list, "reversed"));
            assertSame(list, called("SequencedCollection", backwards, "reversed"));
            assertEquals("c", called("SequencedCollection", backwards, "getFirst"));
            assertEquals("a", called("SequencedCollection", backwards, "removeLast"));
            assertEquals("c", called("SequencedCollection", list, "removeLast"));
            assertEquals(List.of("b"), list);
            Object part = called("SequencedCollection", list.subList(0, 1), "reversed");
            assertEquals(List.of("b"), part);
            assertEquals("b", called("SequencedCollection", part, "removeFirst"));
            assertEquals(List.of(), list);
        }
        linked.addAll(List.of("a", "b"));
        Object deque = called("Deque", linked, "reversed");
        assertEquals("b", ((Deque<?>) deque).peek());
        assertEquals(List.of("b", "a"), deque);
        PersistentTreeMap<String, Integer> map =
                PersistentTreeMap.create(heap, Codec.STRING, Codec.INTEGER);
        map.put("a", 1);
        map.put("b", 2);
        assertEquals("{b=2, a=1}", called("SequencedMap", map, "reversed").toString());
        assertEquals("[a, b]", called("SequencedMap", map, "sequencedKeySet").toString());
        assertEquals("b", called("SequencedCollection", map.keySet(), "getLast"));
        PersistentTreeSet<String> set = PersistentTreeSet.create(heap, Codec.STRING);
        set.addAll(List.of("a", "b"));
        assertEquals("[b, a]", called("SequencedSet", set, "reversed").toString());
        assertEquals("a", called("SequencedCollection", set, "removeFirst"));
    }

    @Test
    void endsOfAListThatIsEmptyAreRefused() {
        for (Function<PersistentArrayList<String>, String> end
                : List.<Function<PersistentArrayList<String>, String>>of(
                        PersistentArrayList::getFirst, PersistentArrayList::getLast,
                        PersistentArrayList::removeFirst, PersistentArrayList::removeLast)) {
            assertThrows(NoSuchElementException.class, () -> end.apply(array));
        }
        assertThrows(NoSuchElementException.class, linked.reversed()::removeFirst);
        array.addFirst("b");
        array.addFirst("a");
        array.addLast("c");
        assertEquals("a", array.getFirst());
        assertEquals("c", array.removeLast());
        assertEquals("a", array.removeFirst());
        assertEquals("b", array.getLast());
    }

    @Test
    void whatIsChangedBackwardsIsChangedAsInACopyThatIsTurned() {
        for (List<String> list : List.of(array, linked)) {
            Random random = new Random(SEED);
            List<String> view = list == array ? array.reversed() : linked.reversed();
            for (int step = 0; step < STEPS; step++) {
                LinkedList<String> expected = new LinkedList<>(list);
                Collections.reverse(expected);
                int kind = random.nextInt(13);
                long replay = random.nextLong();
                String told = "ENTRESOL_SEED=" + SEED + ", step " + step + ", kind " + kind;
                assertEquals(change(expected, kind, new Random(replay)),
                        change(view, kind, new Random(replay)), told);
                assertEquals(expected, view, told);
                assertEquals(expected, new ArrayList<>(view), told);
                Collections.reverse(expected);
                assertEquals(expected, list, told);
            }
        }
    }

    /** One change, and what it gives. */
    private static Object change(List<String> list, int kind, Random random) {
        String some = String.valueOf(random.nextInt(9));
        int size = list.size();
        int index = size == 0 ? 0 : random.nextInt(size);
        switch (kind) {
            case 0 -> list.add(index, some);
            case 1 -> list.addAll(index, List.of(some, "x", "y"));
            case 2 -> {
                return size == 0 ? null : list.remove(index);
            }
            case 3 -> {
                return size == 0 ? null : list.set(index, some);
            }
            case 4 -> {
                return list.remove(some);
            }
            case 5 -> list.sort(random.nextBoolean() ? null : Comparator.reverseOrder());
            case 6 -> list.replaceAll(each -> each.equals(some) ? each + "!" : each);
            case 7 -> {
                return list.removeIf(each -> each.compareTo(some) < 0 || each.length() > 2);
            }
            case 8 -> list.subList(index / 2, index).clear();
            case 9 -> {
                return walked(list.listIterator(index), random);
            }
            case 10 -> {
                return List.of(list.indexOf(some), list.lastIndexOf(some), list.contains(some));
            }
            default -> {
                return list.add(some);
            }
        }
        return null;
    }

    private static List<Object> walked(ListIterator<String> each, Random random) {
        List<Object> seen = new ArrayList<>();
        for (int step = random.nextInt(12); step > 0; step--) {
            seen.add(each.nextIndex());
            boolean onward = random.nextBoolean() && each.hasNext();
            if (!onward && !each.hasPrevious()) {
                each.add("new");
                continue;
            }
            seen.add(onward ? each.next() : each.previous());
            switch (random.nextInt(4)) {
                case 0 -> each.remove();
                case 1 -> each.set("set");
                case 2 -> each.add("added");
                default -> { }
            }
        }
        return seen;
    }

    @Test
    void bothEndsOfADequeThatIsTurnedAreTheOthers() {
        Random random = new Random(SEED);
        Deque<String> view = linked.reversed();
        assertSame(linked, linked.reversed().reversed());
        LinkedList<String> expected = new LinkedList<>();
        List<Function<Deque<String>, Object>> changes = List.of(
                deque -> deque.offer("a"), deque -> deque.offerFirst("b"),
                deque -> deque.offerLast("c"), Deque::pollFirst, Deque::pollLast, Deque::poll,
                Deque::peekFirst, Deque::peekLast, Deque::peek, deque -> {
                    deque.push("d");
                    return deque.element() + deque.getFirst() + deque.getLast() + deque.pop();
                }, deque -> {
                    deque.addLast("e");
                    deque.addFirst("f");
                    deque.addLast("g");
                    return deque.removeLast() + deque.removeFirst();
                }, deque -> deque.removeFirstOccurrence("a"),
                deque -> deque.removeLastOccurrence("c"),
                deque -> {
                    List<String> seen = new ArrayList<>();
                    deque.descendingIterator().forEachRemaining(seen::add);
                    return seen;
                });
        for (int step = 0; step < STEPS; step++) {
            int change = random.nextInt(changes.size());
            String told = "ENTRESOL_SEED=" + SEED + ", step " + step + ", change " + change;
            assertEquals(changes.get(change).apply(expected), changes.get(change).apply(view),
                    told);
            assertEquals(expected, view, told);
        }
    }

    /** As Java has them, lists that are turned change one element after another. */
    @Test
    void whatChangesManyElementsBackwardsIsOneTransaction() {
        List<Consumer<List<String>>> changes = List.of(
                view -> view.sort(null),
                view -> view.replaceAll(element -> element + "!"),
                view -> view.removeIf(element -> element.compareTo("c") < 0),
                view -> view.removeAll(List.of("d", "b")),
                view -> view.addAll(List.of("x", "y")),
                view -> view.subList(0, 3).sort(null),
                Collection::clear);
        for (Consumer<List<String>> change : changes) {
            for (List<String> list : List.of(array, linked)) {
                list.clear();
                list.addAll(List.of("d", "b", "c", "a"));
                List<String> view = list == array ? array.reversed() : linked.reversed();
                assertEquals(list instanceof RandomAccess, view instanceof RandomAccess);
                long before = heap.heap().statistics().commits();
                change.accept(view);
                assertEquals(before + 1, heap.heap().statistics().commits());
            }
        }
    }

    @Test
    void aWalkBackwardsIsRefusedOnceTheListChanged() {
        for (List<String> list : List.of(array, linked)) {
            list.addAll(List.of("a", "b", "c"));
            List<String> view = list == array ? array.reversed() : linked.reversed();
            Iterator<String> each = view.iterator();
            List<String> part = view.subList(0, 2);
            assertEquals("c", each.next());
            list.add("d");
            assertThrows(ConcurrentModificationException.class, each::next);
            assertThrows(ConcurrentModificationException.class, part::size);
            assertEquals(List.of("d", "c", "b", "a"), view);
        }
    }
}
