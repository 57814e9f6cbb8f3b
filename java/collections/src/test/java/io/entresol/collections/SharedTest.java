package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.collections.internal.blocks.Chunks;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.Spliterator;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.FutureTask;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Collections that one thread changes while another one is in the middle of a change. */
class SharedTest {
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
    void sortingALaterStoreLosesNone() throws Exception {
        // All was read before other threads were kept away, and then written over what they stored.
        for (List<String> list : everyList()) {
            list.addAll(List.of("b", "a"));
            Beside beside = new Beside(() -> list.set(0, "z"));
            Comparator<String> order = Comparator.naturalOrder();
            list.sort((left, right) -> {
                beside.begin();
                return order.compare(left, right);
            });
            beside.end();
            assertTrue(List.of(List.of("z", "b"), List.of("a", "z")).contains(list),
                    list.toString());
        }
    }

    @Test
    void replacingAllLosesNoLaterStore() throws Exception {
        for (List<String> list : everyList()) {
            list.addAll(List.of("a", "b"));
            Beside beside = new Beside(() -> list.set(0, "z"));
            list.replaceAll(element -> {
                beside.begin();
                return element + "!";
            });
            beside.end();
            assertTrue(List.of(List.of("z", "b!"), List.of("z!", "b!")).contains(list),
                    list.toString());
        }
    }

    @Test
    void theElementThatWasFoundIsTheOneThatIsRemoved() throws Exception {
        // Another thread removed one before it meanwhile, and the one behind it went.
        List<Predicate<List<String>>> removals = List.of(
                list -> list.remove("x"),
                list -> list.removeAll(List.of("x")),
                list -> list instanceof PersistentLinkedList
                        ? ((PersistentLinkedList<String>) list).removeLastOccurrence("x")
                        : list.remove("x"));
        for (Predicate<List<String>> removal : removals) {
            for (List<String> list : everyList()) {
                list.addAll(List.of("p", "q", "x", "y"));
                removeBeside(list, () -> list.set(0, "p"), () -> list.remove(0),
                        () -> removal.test(list));
                assertEquals(List.of("q", "y"), list);
            }
        }
        PersistentLinkedQueue<String> queue = PersistentLinkedQueue.create(heap, Codec.STRING);
        queue.addAll(List.of("p", "q", "x"));
        removeBeside(queue, () -> queue.add("y"), queue::poll, () -> queue.remove("x"));
        assertEquals(List.of("q", "y"), new ArrayList<>(queue));
    }

    @Test
    void aConditionRemovesNoEntryThatItWasNotAskedFor() throws Exception {
        // The condition saw a value that another thread replaced before the key was removed.
        for (ConcurrentMap<String, String> map : everyMap()) {
            for (boolean byEntry : new boolean[] {true, false}) {
                map.put("key", "old");
                Beside beside = new Beside(() -> map.put("key", "new"));
                Predicate<String> condition = value -> {
                    beside.begin();
                    return value.equals("old");
                };
                if (byEntry) {
                    map.entrySet().removeIf(entry -> condition.test(entry.getValue()));
                } else {
                    map.values().removeIf(condition);
                }
                beside.end();
                assertEquals(Map.of("key", "new"), map);
            }
        }
    }

    @Test
    void aReaderMeetsNoElementBeforeItIsThere() {
        // The list was longer at once, and until the new elements were stored readers were led to
        // cells that had been freed, and were by then those of other collections.
        List<PersistentArrayList<String>> read = new ArrayList<>();
        Codec<String> codec = Codec.of("read while encoding", value -> {
            read.forEach(list -> inAnotherThread(() -> {
                for (int index = 0; index < list.size(); index++) {
                    assertTrue(list.get(index).startsWith("own"), list.get(index));
                }
            }));
            return Codec.STRING.encode(value);
        }, Codec.STRING::decode);
        PersistentArrayList<String> list = PersistentArrayList.create(heap, codec);
        PersistentArrayList<String> other = PersistentArrayList.create(heap, Codec.STRING);
        List<String> own = List.of("own a", "own b", "own c");
        list.add("own");
        list.addAll(own);
        list.subList(1, 4).clear();
        other.addAll(List.of("foreign a", "foreign b", "foreign c"));
        read.add(list);
        list.addAll(own);
        list.addAll(1, own);
        assertEquals(List.of("own", "own a", "own b", "own c", "own a", "own b", "own c"), list);
    }

    @Test
    void whatAListVacatedLeadsNowhere() {
        // The undo of two additions showed for a moment what the first had replaced: the handle of
        // a cell that was freed.
        PersistentArrayList<String> list = PersistentArrayList.create(heap, Codec.STRING);
        Chunks row = new Chunks(heap.heap(), list.block());
        List<String> many = Collections.nCopies(Chunks.SLOTS + 3, "x");
        List<Consumer<List<String>>> removals = List.of(
                shorter -> shorter.remove(0),
                shorter -> shorter.subList(1, Chunks.SLOTS + 1).clear(),
                shorter -> shorter.removeIf(element -> true));
        for (Consumer<List<String>> removal : removals) {
            list.addAll(many);
            removal.accept(list);
            for (int index = list.size(); index < many.size(); index++) {
                assertEquals(0, row.get(index));
            }
            list.clear();
        }
    }

    @Test
    void whetherAMapIsEmptyIsToldWhileAnotherThreadChangesIt() {
        // Of sorted maps a view was asked, which shows one moment and waits for that.
        PersistentTreeSet<String> set = PersistentTreeSet.create(heap, Codec.STRING);
        heap.run(() -> {
            set.add("a");
            for (ConcurrentMap<String, String> map : everyMap()) {
                map.put("a", "1");
                inAnotherThread(() -> {
                    assertFalse(map.isEmpty());
                    assertEquals(1, map.size());
                    assertEquals("1", map.get("a"));
                    assertTrue(map.containsKey("a"));
                });
            }
            inAnotherThread(() -> assertFalse(set.isEmpty()));
        });
    }

    @Test
    void streamsBearChangesAsThoseOfConcurrentMapsDo() {
        // They were told a size that was not theirs.
        for (ConcurrentMap<String, String> map : everyMap()) {
            map.putAll(Map.of("a", "1", "b", "2", "c", "3", "d", "4"));
            for (Collection<?> view : List.of(map.keySet(), map.values(), map.entrySet())) {
                Spliterator<?> split = view.spliterator();
                assertFalse(split.hasCharacteristics(Spliterator.SIZED));
                assertTrue(split.hasCharacteristics(Spliterator.CONCURRENT));
            }
            Object[] seen = map.keySet().stream().peek(key -> map.remove("d")).toArray();
            assertTrue(seen.length >= 3, seen.length + " keys");
            assertEquals(List.of("1", "2", "3"),
                    map.values().parallelStream().sorted().collect(Collectors.toList()));
        }
        PersistentTreeSet<String> set = PersistentTreeSet.create(heap, Codec.STRING);
        set.addAll(List.of("a", "b", "c"));
        for (SortedSet<String> part : List.of(set, set.descendingSet(), set.tailSet("b"))) {
            Spliterator<String> split = part.spliterator();
            assertTrue(split.hasCharacteristics(Spliterator.SORTED | Spliterator.ORDERED
                    | Spliterator.DISTINCT | Spliterator.CONCURRENT));
            assertFalse(split.hasCharacteristics(Spliterator.SIZED));
            assertEquals(Integer.signum(part.comparator().compare("a", "b")),
                    Integer.signum(split.getComparator().compare("a", "b")));
            assertEquals(new ArrayList<>(part),
                    part.stream().sorted(part.comparator()).collect(Collectors.toList()));
        }
    }

    @Test
    void anObjectIsAliveThoughAnUndoneOneHadItsHandle() throws Exception {
        // Its Java object was that of the undone one, or forgotten with it.
        for (int round = 0; round < 20; round++) {
            List<Pair> kept = new ArrayList<>();
            Pair[] undone = new Pair[1];
            try {
                heap.run(() -> {
                    undone[0] = Pair.create(heap);
                    // Told first, when the handle is free again.
                    heap.heap().whenSettled(() -> { }, () -> inAnotherThread(() -> {
                        for (int each = 0; each < 50; each++) {
                            kept.add(Pair.create(heap));
                        }
                    }));
                    throw new IllegalStateException("undo");
                });
            } catch (IllegalStateException expected) {
                assertEquals("undo", expected.getMessage());
            }
            for (Pair pair : kept) {
                assertEquals(pair, heap.object(pair.handle()));
                assertFalse(pair == undone[0]);
            }
        }
    }

    @Test
    void aFieldThatAClassGotStaysThoughAnotherOneOfTheObjectIsUndone() {
        // Both lay in a block that the undone transaction had made.
        Fields fields = new Fields(heap, heap.heap().allocateMemoryBlock(16), 32);
        try {
            heap.run(() -> {
                fields.setLong(16, 1);
                inAnotherThread(() -> fields.setLong(24, 2));
                throw new IllegalStateException("undo");
            });
        } catch (IllegalStateException expected) {
            assertEquals("undo", expected.getMessage());
        }
        assertEquals(0, fields.getLong(16));
        assertEquals(2, fields.getLong(24));
    }

    /** One thread holds a collection and changes it once another one waits to remove something. */
    private void removeBeside(Collection<String> collection, Runnable hold, Runnable change,
            Runnable removal) throws Exception {
        Beside beside = new Beside(removal);
        heap.run(() -> {
            hold.run();
            beside.begin();
            change.run();
        });
        beside.end();
    }

    private List<List<String>> everyList() {
        return List.of(PersistentArrayList.create(heap, Codec.STRING),
                PersistentLinkedList.create(heap, Codec.STRING));
    }

    private List<ConcurrentMap<String, String>> everyMap() {
        return List.of(PersistentHashMap.create(heap, Codec.STRING, Codec.STRING),
                PersistentTreeMap.create(heap, Codec.STRING, Codec.STRING),
                PersistentSkipListMap.create(heap, Codec.STRING, Codec.STRING));
    }

    private static void inAnotherThread(Runnable body) {
        Beside beside = new Beside(body);
        beside.begin();
        try {
            beside.end();
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    /** Something that another thread does; it may have to wait for the thread that begins it. */
    private static final class Beside {
        private final FutureTask<Void> task;
        private Thread thread;

        Beside(Runnable body) {
            task = new FutureTask<>(body, null);
        }

        /** Begins it, the first time, and goes on once it is done or waits for a transaction. */
        void begin() {
            if (thread != null) {
                return;
            }
            thread = new Thread(task);
            thread.start();
            while (!task.isDone() && thread.getState() != Thread.State.TIMED_WAITING) {
                Thread.onSpinWait();
            }
        }

        void end() throws Exception {
            begin();
            task.get();
        }
    }
}
