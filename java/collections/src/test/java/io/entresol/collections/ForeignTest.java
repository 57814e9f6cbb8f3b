package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/**
 * Objects and codecs of another heap are refused. Otherwise a collection could take a codec of
 * another heap, and with it that heap's objects, whose handles lead nowhere once the collection is
 * opened again.
 */
class ForeignTest {
    private static final HeapOptions OPTIONS = HeapOptions.DEFAULT.durability(Durability.NONE);

    @TempDir
    Path folder;

    private ObjectHeap one;
    private ObjectHeap two;

    @BeforeEach
    void create() {
        one = ObjectHeap.create(folder.resolve("one").toString(), 16L << 20, OPTIONS);
        two = ObjectHeap.create(folder.resolve("two").toString(), 16L << 20, OPTIONS);
    }

    @AfterEach
    void close() {
        one.close();
        assertEquals("", two.heap().check());
        two.close();
    }

    /** A codec of a program's own that passes values on. */
    private static <T> Codec<T> passing(Codec<T> to) {
        return new Codec<>() {
            @Override
            public byte[] encode(T value) {
                return to.encode(value);
            }

            @Override
            public T decode(byte[] bytes) {
                return to.decode(bytes);
            }

            @Override
            public String name() {
                return "passing " + to.name();
            }

            @Override
            public ObjectHeap heap() {
                return to.heap();
            }

            @Override
            public void references(byte[] bytes, LongConsumer handles) {
                to.references(bytes, handles);
            }
        };
    }

    private static Map<String, Function<ObjectHeap, Codec<Object>>> codecs() {
        Map<String, Function<ObjectHeap, Codec<Object>>> codecs = new LinkedHashMap<>();
        codecs.put("any", ObjectHeap::any);
        codecs.put("reference", heap -> heap.reference(Object.class));
        codecs.put("passing", heap -> passing(heap.any()));
        return codecs;
    }

    /** What makes a collection of some codec in a heap, and what opens one. */
    private record Kind(Made made, Opened opened) {
        interface Made {
            PersistentObject by(ObjectHeap heap, Codec<Object> codec);
        }

        interface Opened {
            PersistentObject by(ObjectHeap heap, long handle, Codec<Object> codec);
        }
    }

    private static List<Kind> kinds() {
        List<Kind> kinds = new ArrayList<>(List.of(
                new Kind(PersistentArrayList::create, PersistentArrayList::open),
                new Kind(PersistentLinkedList::create, PersistentLinkedList::open),
                new Kind(PersistentLinkedQueue::create, PersistentLinkedQueue::open),
                new Kind(PersistentHashSet::create, PersistentHashSet::open),
                new Kind(PersistentTreeSet::create, PersistentTreeSet::open)));
        Codec<String> text = Codec.STRING;
        kinds.add(new Kind((heap, codec) -> PersistentHashMap.create(heap, text, codec),
                (heap, handle, codec) -> PersistentHashMap.open(heap, handle, text, codec)));
        kinds.add(new Kind((heap, codec) -> PersistentHashMap.create(heap, codec, text),
                (heap, handle, codec) -> PersistentHashMap.open(heap, handle, codec, text)));
        kinds.add(new Kind((heap, codec) -> PersistentTreeMap.create(heap, text, codec),
                (heap, handle, codec) -> PersistentTreeMap.open(heap, handle, text, codec)));
        kinds.add(new Kind((heap, codec) -> PersistentTreeMap.create(heap, codec, text),
                (heap, handle, codec) -> PersistentTreeMap.open(heap, handle, codec, text)));
        kinds.add(new Kind((heap, codec) -> PersistentSkipListMap.create(heap, text, codec),
                (heap, handle, codec) -> PersistentSkipListMap.open(heap, handle, text, codec)));
        return kinds;
    }

    private static void refused(Executable what) {
        String said = assertThrows(IllegalArgumentException.class, what).getMessage();
        assertTrue(said.contains("/one") && said.contains("/two"), said);
    }

    @Test
    void aCodecOfAnotherHeapIsRefusedWhereACollectionIsMadeOrOpened() {
        for (Kind kind : kinds()) {
            codecs().forEach((name, codec) -> {
                long blocks = two.heap().statistics().live();
                refused(() -> kind.made.by(two, codec.apply(one)));
                assertEquals(blocks, two.heap().statistics().live(), name);
                PersistentObject there = kind.made.by(two, codec.apply(two));
                refused(() -> kind.opened.by(two, there.handle(), codec.apply(one)));
                assertEquals(there, kind.opened.by(two, there.handle(), codec.apply(two)), name);
            });
        }
    }

    @Test
    void anObjectOfAnotherHeapIsRefusedWhereverOneIsLedTo() {
        Pair pair = Pair.create(one);
        PersistentArrayList<Object> inner = PersistentArrayList.create(one, one.any());
        for (PersistentObject foreign : List.of(pair, inner)) {
            refused(() -> two.directory().put("name", foreign));
            refused(() -> PersistentArray.of(two, foreign));
            refused(() -> PersistentImmutableArray.of(two, foreign));
            refused(() -> PersistentTuple1.of(two, foreign));
            refused(() -> PersistentAtomicReference.of(two, foreign));
            PersistentArray<Object> array = PersistentArray.create(two, 1);
            refused(() -> array.set(0, foreign));
            PersistentAtomicReference<Object> reference = PersistentAtomicReference.of(two, null);
            refused(() -> reference.set(foreign));
            refused(() -> reference.getAndSet(foreign));
            refused(() -> reference.compareAndSet(null, foreign));
            PersistentArrayList<Object> list = PersistentArrayList.create(two, two.any());
            refused(() -> list.add(foreign));
            PersistentHashMap<Object, Object> map =
                    PersistentHashMap.create(two, two.any(), two.any());
            refused(() -> map.put("key", foreign));
            refused(() -> map.put(foreign, "value"));
            assertTrue(list.isEmpty() && map.isEmpty());
            assertNull(array.get(0));
            assertNull(two.directory().get("name", Object.class));
        }
    }

    @Test
    void anObjectOfAnotherHeapIsRefusedInTransactionsOfBoth() {
        PersistentArrayList<Object> list = PersistentArrayList.create(two, two.any());
        refused(() -> one.run(() -> {
            Pair made = Pair.create(one);
            two.run(() -> list.add(made));
        }));
        assertTrue(list.isEmpty());
        refused(() -> PersistentArrays.arrayCopy(PersistentArray.of(one, "a"), 0,
                PersistentArray.create(two, 1), 0, 1));
    }
}
