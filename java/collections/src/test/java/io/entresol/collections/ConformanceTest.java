package io.entresol.collections;

import com.google.common.collect.testing.ConcurrentNavigableMapTestSuiteBuilder;
import com.google.common.collect.testing.TestStringSortedMapGenerator;
import com.google.common.collect.testing.features.CollectionFeature;
import com.google.common.collect.testing.features.CollectionSize;
import com.google.common.collect.testing.features.MapFeature;
import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import io.entresol.heap.TransactionalHeap;
import java.io.File;
import java.io.IOException;
import java.util.Map;
import java.util.SortedMap;
import junit.framework.Test;
import junit.framework.TestSuite;
import org.junit.runner.RunWith;
import org.junit.runners.AllTests;

/** The maps of this package, judged by Guava's suites for the interfaces of {@code java.util}. */
@RunWith(AllTests.class)
public final class ConformanceTest {
    private ConformanceTest() {
    }

    public static Test suite() throws IOException {
        File file = File.createTempFile("entresol-conformance", ".heap");
        file.delete();
        file.deleteOnExit();
        TransactionalHeap heap = TransactionalHeap.createHeap(file.toString(), 256L << 20,
                HeapOptions.DEFAULT.durability(Durability.NONE));
        TestSuite suite = new TestSuite("collections");
        suite.addTest(ConcurrentNavigableMapTestSuiteBuilder
                .using(new TestStringSortedMapGenerator() {
                    @Override
                    protected SortedMap<String, String> create(
                            Map.Entry<String, String>[] entries) {
                        PersistentTreeMap<String, String> map =
                                PersistentTreeMap.create(heap, Codec.STRING, Codec.STRING);
                        for (Map.Entry<String, String> entry : entries) {
                            map.put(entry.getKey(), entry.getValue());
                        }
                        return map;
                    }
                })
                .named("PersistentTreeMap")
                .withFeatures(CollectionSize.ANY, MapFeature.GENERAL_PURPOSE,
                        CollectionFeature.SUPPORTS_ITERATOR_REMOVE, CollectionFeature.KNOWN_ORDER)
                .createTestSuite());
        return suite;
    }
}
