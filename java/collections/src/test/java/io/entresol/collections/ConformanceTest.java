package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.common.collect.testing.ConcurrentMapTestSuiteBuilder;
import com.google.common.collect.testing.ConcurrentNavigableMapTestSuiteBuilder;
import com.google.common.collect.testing.FeatureSpecificTestSuiteBuilder;
import com.google.common.collect.testing.ListTestSuiteBuilder;
import com.google.common.collect.testing.MapTestSuiteBuilder;
import com.google.common.collect.testing.NavigableSetTestSuiteBuilder;
import com.google.common.collect.testing.QueueTestSuiteBuilder;
import com.google.common.collect.testing.SetTestSuiteBuilder;
import com.google.common.collect.testing.TestStringListGenerator;
import com.google.common.collect.testing.TestStringMapGenerator;
import com.google.common.collect.testing.TestStringQueueGenerator;
import com.google.common.collect.testing.TestStringSetGenerator;
import com.google.common.collect.testing.TestStringSortedMapGenerator;
import com.google.common.collect.testing.TestStringSortedSetGenerator;
import com.google.common.collect.testing.features.CollectionFeature;
import com.google.common.collect.testing.features.CollectionSize;
import com.google.common.collect.testing.features.Feature;
import com.google.common.collect.testing.features.ListFeature;
import com.google.common.collect.testing.features.MapFeature;
import com.google.common.collect.testing.features.SetFeature;
import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Queue;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.function.Supplier;
import junit.framework.TestFailure;
import junit.framework.TestResult;
import junit.framework.TestSuite;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/**
 * The collections of this package, judged by Guava's suites for {@code java.util}: thousands of
 * tests for each, which count as one here.
 */
class ConformanceTest {
    private static final Codec<String> STRING = Codec.STRING;

    @TempDir
    static Path folder;

    private static ObjectHeap heap;
    private static Codec<String> any;

    private final List<DynamicTest> tests = new ArrayList<>();

    @BeforeAll
    @SuppressWarnings("unchecked")
    static void createHeap() {
        heap = ObjectHeap.create(folder.resolve("heap").toString(), 1L << 30,
                HeapOptions.DEFAULT.durability(Durability.NONE));
        // Strings and null are among what it takes.
        any = (Codec<String>) (Codec<?>) heap.any();
    }

    @AfterAll
    static void closeHeap() {
        assertEquals("", heap.heap().check());
        heap.close();
    }

    @TestFactory
    List<DynamicTest> collectionsBehaveAsTheirInterfacesSay() {
        lists();
        queues();
        sets();
        maps();
        return tests;
    }

    private void lists() {
        List<Feature<?>> features = List.of(CollectionSize.ANY, ListFeature.GENERAL_PURPOSE,
            CollectionFeature.SUPPORTS_ITERATOR_REMOVE,
            CollectionFeature.FAILS_FAST_ON_CONCURRENT_MODIFICATION);
        add("PersistentArrayList", ListTestSuiteBuilder.using(
                list(() -> PersistentArrayList.create(heap, STRING))), features);
        add("PersistentArrayList of any", ListTestSuiteBuilder.using(
                list(() -> PersistentArrayList.create(heap, any))), features,
                CollectionFeature.ALLOWS_NULL_VALUES);
        add("PersistentLinkedList", ListTestSuiteBuilder.using(
                list(() -> PersistentLinkedList.create(heap, STRING))), features);
        add("PersistentLinkedList of any", ListTestSuiteBuilder.using(
                list(() -> PersistentLinkedList.create(heap, any))), features,
                CollectionFeature.ALLOWS_NULL_VALUES);
    }

    private void queues() {
        List<Feature<?>> features = List.of(CollectionSize.ANY, CollectionFeature.GENERAL_PURPOSE,
            CollectionFeature.KNOWN_ORDER,
            CollectionFeature.FAILS_FAST_ON_CONCURRENT_MODIFICATION);
        add("PersistentLinkedQueue", QueueTestSuiteBuilder.using(
                queue(() -> PersistentLinkedQueue.create(heap, STRING))), features);
        add("PersistentLinkedList as a queue", QueueTestSuiteBuilder.using(
                queue(() -> PersistentLinkedList.create(heap, STRING))), features);
    }

    private void sets() {
        add("PersistentHashSet", SetTestSuiteBuilder.using(new TestStringSetGenerator() {
            @Override
            protected Set<String> create(String[] elements) {
                return filled(PersistentHashSet.create(heap, STRING), elements);
            }
        }), List.of(CollectionSize.ANY), SetFeature.GENERAL_PURPOSE);
        add("PersistentHashSet of any", SetTestSuiteBuilder.using(new TestStringSetGenerator() {
            @Override
            protected Set<String> create(String[] elements) {
                return filled(PersistentHashSet.create(heap, any), elements);
            }
        }), List.of(CollectionSize.ANY), SetFeature.GENERAL_PURPOSE,
                CollectionFeature.ALLOWS_NULL_VALUES);
        add("PersistentTreeSet", NavigableSetTestSuiteBuilder.using(
                new TestStringSortedSetGenerator() {
                    @Override
                    protected SortedSet<String> create(String[] elements) {
                        NavigableSet<String> set = PersistentTreeSet.create(heap, STRING);
                        return filled(set, elements);
                    }
                }), List.of(CollectionSize.ANY), SetFeature.GENERAL_PURPOSE,
                CollectionFeature.KNOWN_ORDER);
    }

    private void maps() {
        List<Feature<?>> features = List.of(CollectionSize.ANY, MapFeature.GENERAL_PURPOSE,
            CollectionFeature.SUPPORTS_ITERATOR_REMOVE);
        add("PersistentHashMap", ConcurrentMapTestSuiteBuilder.using(
                map(() -> PersistentHashMap.create(heap, STRING, STRING))), features);
        add("PersistentHashMap of any", MapTestSuiteBuilder.using(
                map(() -> PersistentHashMap.create(heap, any, any))), features,
                MapFeature.ALLOWS_NULL_KEYS, MapFeature.ALLOWS_NULL_VALUES,
                MapFeature.ALLOWS_ANY_NULL_QUERIES);
        List<Feature<?>> sorted = List.of(CollectionSize.ANY, MapFeature.GENERAL_PURPOSE,
                CollectionFeature.SUPPORTS_ITERATOR_REMOVE, CollectionFeature.KNOWN_ORDER);
        add("PersistentTreeMap", ConcurrentNavigableMapTestSuiteBuilder.using(
                sortedMap(() -> PersistentTreeMap.create(heap, STRING, STRING))), sorted);
        add("PersistentSkipListMap", ConcurrentNavigableMapTestSuiteBuilder.using(
                sortedMap(() -> PersistentSkipListMap.create(heap, STRING, STRING))), sorted);
    }

    private void add(String name, FeatureSpecificTestSuiteBuilder<?, ?> builder,
            List<Feature<?>> features, Feature<?>... more) {
        builder.named(name);
        builder.withFeatures(features);
        builder.withFeatures(more);
        TestSuite suite = builder.createTestSuite();
        tests.add(DynamicTest.dynamicTest(name, () -> {
            TestResult result = new TestResult();
            suite.run(result);
            System.out.println(name + ": " + result.runCount() + " tests");
            assertTrue(result.runCount() > 100, "the suite was not run");
            assertEquals(List.of(), wrong(result));
        }));
    }

    private static List<String> wrong(TestResult result) {
        List<String> wrong = new ArrayList<>();
        for (Enumeration<TestFailure> each : List.of(result.failures(), result.errors())) {
            each.asIterator().forEachRemaining(failure -> wrong.add(failure.trace()));
        }
        return wrong;
    }

    private static TestStringListGenerator list(Supplier<List<String>> empty) {
        return new TestStringListGenerator() {
            @Override
            protected List<String> create(String[] elements) {
                return filled(empty.get(), elements);
            }
        };
    }

    private static TestStringQueueGenerator queue(Supplier<Queue<String>> empty) {
        return new TestStringQueueGenerator() {
            @Override
            protected Queue<String> create(String[] elements) {
                return filled(empty.get(), elements);
            }
        };
    }

    private static TestStringMapGenerator map(Supplier<Map<String, String>> empty) {
        return new TestStringMapGenerator() {
            @Override
            protected Map<String, String> create(Map.Entry<String, String>[] entries) {
                return filled(empty.get(), entries);
            }
        };
    }

    private static TestStringSortedMapGenerator sortedMap(
            Supplier<SortedMap<String, String>> empty) {
        return new TestStringSortedMapGenerator() {
            @Override
            protected SortedMap<String, String> create(Map.Entry<String, String>[] entries) {
                return filled(empty.get(), entries);
            }
        };
    }

    private static <C extends Collection<String>> C filled(C empty, String[] elements) {
        for (String element : elements) {
            empty.add(element);
        }
        return empty;
    }

    private static <M extends Map<String, String>> M filled(
            M empty, Map.Entry<String, String>[] entries) {
        for (Map.Entry<String, String> entry : entries) {
            empty.put(entry.getKey(), entry.getValue());
        }
        return empty;
    }
}
