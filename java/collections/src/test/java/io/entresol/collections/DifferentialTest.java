package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedList;
import java.util.List;
import java.util.ListIterator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Queue;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The same random operations on a collection in a heap and on one of {@code java.util}: several in
 * a transaction, some of which are undone, with the heap closed and opened again in between.
 */
class DifferentialTest {
    private static final long SEED = Long.getLong("entresol.seed", 11);
    private static final int ROUNDS = Integer.getInteger("entresol.fuzz.rounds", 400);
    private static final int ROUNDS_OPEN = 50;
    private static final HeapOptions QUICK = HeapOptions.DEFAULT.durability(Durability.NONE);

    @TempDir
    Path folder;

    @Test
    void anArrayListDoesWhatAnArrayListDoes() {
        compare(new ArrayList<String>(), ArrayList::new,
                heap -> PersistentArrayList.create(heap, Codec.STRING), DifferentialTest::ofList);
    }

    @Test
    void aLinkedListDoesWhatALinkedListDoes() {
        compare(new LinkedList<String>(), LinkedList::new,
                heap -> PersistentLinkedList.create(heap, Codec.STRING), random ->
                        random.nextBoolean() ? ofList(random)::apply : ofDeque(random)::apply);
    }

    @Test
    void aQueueDoesWhatAnArrayDequeDoes() {
        compare(new ArrayDeque<String>(), ArrayDeque::new,
                heap -> PersistentLinkedQueue.create(heap, Codec.STRING),
                DifferentialTest::ofQueue);
    }

    @Test
    void aHashMapDoesWhatAHashMapDoes() {
        compare(new HashMap<String, Long>(), HashMap::new,
                heap -> PersistentHashMap.create(heap, Codec.STRING, Codec.LONG),
                DifferentialTest::ofMap);
    }

    @Test
    void aTreeMapDoesWhatATreeMapDoes() {
        compare(new TreeMap<String, Long>(), TreeMap::new,
                heap -> PersistentTreeMap.create(heap, Codec.STRING, Codec.LONG), random ->
                        random.nextBoolean() ? ofMap(random)::apply : ofSortedMap(random)::apply);
    }

    @Test
    void aSkipListMapDoesWhatATreeMapDoes() {
        compare(new TreeMap<String, Long>(), TreeMap::new,
                heap -> PersistentSkipListMap.create(heap, Codec.STRING, Codec.LONG), random ->
                        random.nextBoolean() ? ofMap(random)::apply : ofSortedMap(random)::apply);
    }

    @Test
    void aTreeSetDoesWhatATreeSetDoes() {
        compare(new TreeSet<String>(), TreeSet::new,
                heap -> PersistentTreeSet.create(heap, Codec.STRING),
                DifferentialTest::ofCollection);
    }

    /** {@code C} is the least that both collections are. */
    private <C, M extends C, P extends C> void compare(M empty, UnaryOperator<M> copy,
            Function<ObjectHeap, P> create, Function<Random, Function<? super C, Object>> steps) {
        System.out.println(empty.getClass().getSimpleName() + ": -Dentresol.seed=" + SEED);
        Random random = new Random(SEED);
        String path = folder.resolve("heap").toString();
        try (ObjectHeap heap = ObjectHeap.create(path, 64L << 20, QUICK)) {
            heap.directory().put("it", create.apply(heap));
        }
        M model = empty;
        for (int round = 0; round < ROUNDS;) {
            try (ObjectHeap heap = ObjectHeap.open(path, QUICK)) {
                @SuppressWarnings("unchecked")
                P real = (P) heap.directory().get("it", Object.class);
                for (int end = round + ROUNDS_OPEN; round < end; round++) {
                    model = round(heap, copy, model, real, random, steps);
                    assertEquals(contents(model), contents(real), "round " + round);
                }
                assertEquals("", heap.heap().check());
            }
        }
    }

    /** A transaction; the model after it. */
    private static <C, M extends C, P extends C> M round(ObjectHeap heap, UnaryOperator<M> copy,
            M model, P real, Random random, Function<Random, Function<? super C, Object>> steps) {
        List<Function<? super C, Object>> chosen = new ArrayList<>();
        for (int step = random.nextInt(8); step >= 0; step--) {
            chosen.add(steps.apply(random));
        }
        if (random.nextInt(4) == 0) {
            M undone = copy.apply(model);
            assertThrows(Undone.class, () -> heap.run(() -> {
                chosen.forEach(step -> same(step, undone, real));
                throw new Undone();
            }));
            return model;
        }
        heap.run(() -> chosen.forEach(step -> same(step, model, real)));
        return model;
    }

    private static <C> void same(Function<? super C, Object> step, C model, C real) {
        assertEquals(result(step, model), result(step, real));
    }

    /** What a step returned, as values that can be compared, or what it threw. */
    private static <C> Object result(Function<? super C, Object> step, C collection) {
        try {
            return step.apply(collection);
        } catch (IndexOutOfBoundsException | java.util.NoSuchElementException failure) {
            return failure.getClass().getSimpleName().substring(0, 5);
        }
    }

    private static Object contents(Object collection) {
        return collection instanceof Map ? collection : new ArrayList<>((Collection<?>) collection);
    }

    private static Function<List<String>, Object> ofList(Random random) {
        int index = random.nextInt(150);
        int other = index + random.nextInt(100);
        String text = text(random);
        List<String> texts = new ArrayList<>();
        for (int each = random.nextInt(100); each > 0; each--) {
            texts.add(text(random));
        }
        switch (random.nextInt(12)) {
            case 0:
                return list -> {
                    list.add(Math.min(index, list.size()), text);
                    return null;
                };
            case 1:
                return list -> list.addAll(Math.min(index, list.size()), texts);
            case 2:
                return list -> list.remove(index);
            case 3:
                return list -> list.set(index, text);
            case 4:
                return list -> {
                    int to = Math.min(other, list.size());
                    list.subList(Math.min(index, to), to).clear();
                    return null;
                };
            case 5:
                return list -> list.removeIf(each -> each.startsWith(text));
            case 6:
                return list -> list.indexOf(text) + " " + list.lastIndexOf(text);
            case 7:
                return list -> walk(list, index);
            case 8:
                return list -> {
                    list.sort(null);
                    return list.size();
                };
            case 9:
                return list -> list.remove(text);
            default:
                return list -> list.add(text);
        }
    }

    /** Goes through a list and changes it on the way, by its iterator. */
    private static Object walk(List<String> list, int from) {
        StringBuilder seen = new StringBuilder();
        ListIterator<String> all = list.listIterator(Math.min(from, list.size()));
        for (int step = 0; step < 20; step++) {
            boolean back = step % 5 == 4;
            if (back ? !all.hasPrevious() : !all.hasNext()) {
                all.add("end");
                break;
            }
            seen.append(all.nextIndex()).append(back ? all.previous() : all.next());
            switch (step % 7) {
                case 1:
                    all.remove();
                    break;
                case 3:
                    all.set("set");
                    break;
                case 6:
                    all.add("added");
                    break;
                default:
                    break;
            }
        }
        return seen.toString();
    }

    private static Function<Deque<String>, Object> ofDeque(Random random) {
        String text = text(random);
        switch (random.nextInt(7)) {
            case 0:
                return deque -> deque.offerFirst(text);
            case 1:
                return Deque::pollFirst;
            case 2:
                return Deque::pollLast;
            case 3:
                return deque -> deque.peekFirst() + deque.peekLast();
            case 4:
                return deque -> deque.removeLastOccurrence(text);
            case 5:
                return Deque::removeLast;
            default:
                return ofQueue(random)::apply;
        }
    }

    private static Function<Queue<String>, Object> ofQueue(Random random) {
        String text = text(random);
        switch (random.nextInt(6)) {
            case 0:
                return Queue::poll;
            case 1:
                return Queue::peek;
            case 2:
                return Queue::remove;
            case 3:
                return ofCollection(random)::apply;
            default:
                return queue -> queue.offer(text);
        }
    }

    private static Function<Collection<String>, Object> ofCollection(Random random) {
        String text = text(random);
        switch (random.nextInt(6)) {
            case 0:
                return all -> all.remove(text);
            case 1:
                return all -> all.contains(text);
            case 2:
                return all -> {
                    int removed = 0;
                    for (Iterator<String> each = all.iterator(); each.hasNext();) {
                        if (each.next().endsWith(text)) {
                            each.remove();
                            removed++;
                        }
                    }
                    return removed;
                };
            case 3:
                return random.nextInt(10) > 0 ? Collection::size : all -> {
                    all.clear();
                    return null;
                };
            default:
                return all -> all.add(text);
        }
    }

    private static Function<Map<String, Long>, Object> ofMap(Random random) {
        String key = text(random);
        Long value = (long) random.nextInt(10);
        Long other = (long) random.nextInt(10);
        switch (random.nextInt(14)) {
            case 0:
                return map -> map.remove(key);
            case 1:
                return map -> map.get(key) + " " + map.containsKey(key) + map.size();
            case 2:
                return map -> map.putIfAbsent(key, value);
            case 3:
                return map -> map.remove(key, value);
            case 4:
                return map -> map.replace(key, value, other);
            case 5:
                return map -> map.replace(key, value);
            case 6:
                return map -> map.merge(key, value, (a, b) -> a.equals(b) ? null : a + b);
            case 7:
                return map -> map.compute(key, (k, old) -> old == null ? value : null);
            case 8:
                return map -> map.computeIfPresent(key, (k, old) -> old > 5 ? null : old + value);
            case 9:
                return map -> map.values().removeIf(value::equals);
            case 10:
                return map -> map.keySet().removeIf(each -> each.endsWith(key));
            default:
                return map -> map.put(key, value);
        }
    }

    private static Function<NavigableMap<String, Long>, Object> ofSortedMap(Random random) {
        String key = text(random);
        String end = text(random);
        boolean from = random.nextBoolean();
        boolean to = random.nextBoolean();
        String low = key.compareTo(end) < 0 ? key : end;
        String high = key.compareTo(end) < 0 ? end : key;
        switch (random.nextInt(7)) {
            case 0:
                return NavigableMap::pollFirstEntry;
            case 1:
                return NavigableMap::pollLastEntry;
            case 2:
                return map -> map.lowerKey(key) + " " + map.floorKey(key) + " "
                        + map.ceilingKey(key) + " " + map.higherKey(key);
            case 3:
                return map -> new ArrayList<>(map.subMap(low, from, high, to).entrySet());
            case 4:
                return map -> new ArrayList<>(
                        map.descendingMap().subMap(high, from, low, to).keySet());
            case 5:
                return map -> map.headMap(key, from).size() + map.tailMap(end, to).size();
            default:
                return map -> {
                    map.subMap(low, from, high, to).clear();
                    return map.size();
                };
        }
    }

    /** Short texts of few letters, so that many begin others; sometimes a long one. */
    private static String text(Random random) {
        int length = random.nextInt(30) == 0 ? random.nextInt(300) : random.nextInt(4);
        StringBuilder text = new StringBuilder();
        for (int index = 0; index < length; index++) {
            text.append((char) ('a' + random.nextInt(3)));
        }
        return text.toString();
    }

    private static final class Undone extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }
}
