package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.heap.HeapStatistics;
import java.lang.ref.Reference;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class CollectTest {
    @TempDir
    Path folder;

    @Test
    void circlesThatNothingLeadsToAreFreed() {
        try (ObjectHeap objects = Heaps.create(folder)) {
            objects.directory().put("kept", Pair.create(objects));
            assertEquals(0, objects.collect().freedBlocks());
            Pair first = Pair.create(objects);
            Pair second = Pair.create(objects);
            first.first(second);
            second.first(first);
            second.second(second);
            assertEquals(0, objects.collect().freedBlocks(), "Java objects lead to them");
            assertEquals(3, objects.collect().keptObjects());
            Reference.reachabilityFence(first);
            Reference.reachabilityFence(second);
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            Collected collected = objects.collect();
            assertEquals(2, collected.freedBlocks(), collected.toString());
            assertEquals(1, collected.keptObjects());
            assertTrue(collected.freedBytes() >= 2 * 24, collected.toString());
            assertEquals("", objects.heap().check());
        }
    }

    @Test
    void anEmptyDirectoryLeavesAsMuchRoomAsAFreshHeap() {
        HeapStatistics fresh;
        try (ObjectHeap objects = Heaps.create(folder)) {
            // The types stay.
            Pair.create(objects);
            PersistentTuple2.of(objects, 1, 2);
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            objects.collect();
            fresh = objects.heap().statistics();
            Random random = new Random(7);
            for (int round = 0; round < 200; round++) {
                PersistentTuple2<Object, Object> tuple = PersistentTuple2.of(objects,
                        "text ".repeat(random.nextInt(2000)), new byte[random.nextInt(90_000)]);
                objects.directory().put("at " + random.nextInt(50), tuple);
                if (random.nextInt(4) == 0) {
                    tuple._1(tuple);
                }
            }
            objects.directory().names().forEach(objects.directory()::remove);
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            Collected collected = objects.collect();
            HeapStatistics left = objects.heap().statistics();
            assertEquals(0, collected.keptObjects());
            assertEquals(fresh.live(), left.live(), collected.toString());
            assertEquals(fresh.liveBytes(), left.liveBytes(), collected.toString());
            assertEquals(0, objects.collect().freedBlocks());
            // A block as large as the fresh heap had room for fits again. It takes room that was
            // still laid out in slots, and so the books of those.
            objects.heap().allocateMemoryBlock(fresh.largestFreeBlock() - 64).free();
            long free = objects.heap().statistics().freeBytes();
            assertTrue(free >= fresh.freeBytes(), free + " bytes of " + fresh.freeBytes());
        }
    }

    @Test
    void randomGraphsKeepWhatIsReachableAndNothingElse() {
        for (long seed = 1; seed <= 8; seed++) {
            String path = folder.resolve("graph" + seed).toString();
            String replay = "seed " + seed;
            Random random = new Random(seed);
            int count = 300;
            int[][] edges = new int[count][2];
            long[] handles = new long[count];
            Set<Integer> roots = new HashSet<>();
            try (ObjectHeap objects = ObjectHeap.create(path, 16L << 20)) {
                objects.run(() -> graph(objects, random, edges, handles, roots));
            }
            try (ObjectHeap objects = ObjectHeap.open(path)) {
                Set<Integer> reachable = reachable(edges, roots);
                Collected collected = objects.collect();
                assertEquals(reachable.size(), collected.keptObjects(), replay);
                assertEquals(count - reachable.size(), collected.freedBlocks(), replay);
                for (int index = 0; index < count; index++) {
                    boolean live = objects.heap().isLive(handles[index]);
                    assertEquals(reachable.contains(index), live, replay + " object " + index);
                }
                for (int index : reachable) {
                    Pair pair = objects.object(handles[index]);
                    same(pair.first(), edges[index][0], handles);
                    same(pair.second(), edges[index][1], handles);
                }
                assertEquals("", objects.heap().check(), replay);
            }
        }
    }

    @Test
    void whatATransactionMakesIsNotCollectedBeforeItsEnd() throws Exception {
        ExecutorService others = Executors.newFixedThreadPool(3);
        try (ObjectHeap objects = Heaps.create(folder)) {
            List<Future<?>> all = new ArrayList<>();
            for (int thread = 0; thread < 2; thread++) {
                String name = "thread " + thread;
                all.add(others.submit(() -> {
                    for (int round = 0; round < 200; round++) {
                        int now = round;
                        alone(objects, () -> {
                            Pair pair = Pair.create(objects);
                            pair.first(Pair.create(objects));
                            pair.first().second(pair);
                            PersistentTuple1<Object> text =
                                    PersistentTuple1.of(objects, name + now);
                            objects.directory().put(name, pair);
                            objects.directory().put(name + " text", text);
                        });
                        Pair pair = objects.directory().get(name, Pair.class);
                        assertSame(pair, pair.first().second());
                        assertEquals(name + now, objects.directory()
                                .get(name + " text", PersistentTuple1.class)._1());
                    }
                }));
            }
            Future<?> collecting = others.submit(() -> {
                for (int round = 0; round < 60; round++) {
                    objects.collect();
                }
            });
            for (Future<?> each : all) {
                each.get();
            }
            collecting.get();
            assertEquals("", objects.heap().check());
        } finally {
            others.shutdown();
        }
    }

    @Test
    void aTransactionCannotCollect() {
        try (ObjectHeap objects = Heaps.create(folder)) {
            assertThrows(IllegalStateException.class, () -> objects.run(() -> {
                objects.collect();
            }));
        }
    }

    /** Transactions that change the directory exclude each other. */
    private static void alone(ObjectHeap objects, Runnable body) {
        synchronized (objects) {
            objects.run(body);
        }
    }

    private static void graph(ObjectHeap objects, Random random, int[][] edges, long[] handles,
            Set<Integer> roots) {
        List<Pair> pairs = new ArrayList<>();
        for (int index = 0; index < edges.length; index++) {
            pairs.add(Pair.create(objects));
            handles[index] = pairs.get(index).handle();
        }
        for (int index = 0; index < edges.length; index++) {
            for (int side = 0; side < 2; side++) {
                edges[index][side] = random.nextInt(10) < 4 ? random.nextInt(edges.length) : -1;
            }
            pairs.get(index).first(edges[index][0] < 0 ? null : pairs.get(edges[index][0]));
            pairs.get(index).second(edges[index][1] < 0 ? null : pairs.get(edges[index][1]));
        }
        for (int root = 0; root < 10; root++) {
            int chosen = random.nextInt(edges.length);
            objects.directory().put("root " + root, pairs.get(chosen));
            roots.add(chosen);
        }
    }

    private static Set<Integer> reachable(int[][] edges, Set<Integer> roots) {
        Set<Integer> found = new HashSet<>(roots);
        Deque<Integer> waiting = new ArrayDeque<>(roots);
        while (!waiting.isEmpty()) {
            for (int next : edges[waiting.pop()]) {
                if (next >= 0 && found.add(next)) {
                    waiting.push(next);
                }
            }
        }
        return Collections.unmodifiableSet(found);
    }

    private static void same(Pair pair, int expected, long[] handles) {
        if (expected < 0) {
            assertNull(pair);
        } else {
            assertEquals(handles[expected], pair.handle());
        }
    }
}
