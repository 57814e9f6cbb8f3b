package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import io.entresol.heap.Transaction;
import io.entresol.heap.TransactionalHeap;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ObjectHeapTest {
    private static final long BYTES = 16L << 20;

    @TempDir
    Path folder;

    private String path() {
        return folder.resolve("heap").toString();
    }

    private ObjectHeap create() {
        return ObjectHeap.create(path(), BYTES, HeapOptions.DEFAULT.durability(Durability.NONE));
    }

    @Test
    void whatTheDirectoryLeadsToIsThereAfterReopening() {
        try (ObjectHeap objects = create()) {
            Pair pair = Pair.create(objects);
            pair.first(pair);
            objects.directory().put("pair", pair);
            objects.directory().put("again", pair);
        }
        try (ObjectHeap objects = ObjectHeap.open(path())) {
            Pair pair = objects.directory().get("pair", Pair.class);
            assertSame(pair, pair.first());
            assertNull(pair.second());
            assertSame(pair, objects.directory().get("again", Pair.class));
            assertEquals(List.of("again", "pair"), objects.directory().names());
            assertTrue(objects.directory().remove("again"));
            assertFalse(objects.directory().remove("again"));
            assertNull(objects.directory().get("again", Pair.class));
        }
    }

    @Test
    void anObjectIsOneJavaObjectWhileThatIsAlive() {
        try (ObjectHeap objects = create()) {
            Pair pair = Pair.create(objects);
            assertSame(pair, objects.object(pair.handle()));
            assertSame(objects, ObjectHeap.of(objects.heap()));
            assertNotSame(pair, Pair.create(objects));
        }
    }

    @Test
    void anObjectOfAnotherClassIsRefusedByTheDirectory() {
        try (ObjectHeap objects = create()) {
            objects.directory().put("pair", Pair.create(objects));
            assertThrows(ClassCastException.class,
                    () -> objects.directory().get("pair", Other.class));
        }
    }

    @Test
    void anAbortForgetsObjectsAndTypes() {
        try (ObjectHeap objects = create()) {
            Pair[] kept = new Pair[1];
            assertThrows(IllegalStateException.class, () -> objects.run(() -> {
                kept[0] = Pair.create(objects);
                throw new IllegalStateException("undo");
            }));
            assertThrows(IllegalStateException.class, kept[0]::handle);
            Other other = Other.TYPE.create(objects, 64, range -> { });
            Pair pair = Pair.create(objects);
            assertSame(Other.class, objects.object(other.handle()).getClass());
            assertSame(pair, objects.object(pair.handle()));
            objects.directory().put("pair", pair);
            objects.directory().put("other", other);
        }
        try (ObjectHeap objects = ObjectHeap.open(path())) {
            assertNull(objects.directory().get("pair", Pair.class).first());
            assertSame(Other.class, objects.directory().get("other", Other.class).getClass());
        }
    }

    @Test
    void anInnerAbortForgetsWhatWasMadeInsideAlone() {
        try (ObjectHeap objects = create()) {
            Pair[] kept = new Pair[2];
            objects.run(() -> {
                kept[0] = Pair.create(objects);
                assertThrows(IllegalStateException.class, () -> objects.run(() -> {
                    kept[1] = Pair.create(objects);
                    throw new IllegalStateException("undo");
                }));
            });
            assertThrows(IllegalStateException.class, kept[1]::handle);
            assertSame(kept[0], objects.object(kept[0].handle()));
        }
    }

    @Test
    void otherFieldsAreRefusedAndMoreAreTaken() {
        try (ObjectHeap objects = create()) {
            ObjectType<Other> first = ObjectType.of(Other.class, Other.class, "o", "a int, b int",
                    Other::new);
            first.create(objects, 16, range -> { });
        }
        try (ObjectHeap objects = ObjectHeap.open(path())) {
            ObjectType<Other> turned = ObjectType.of(Other.class, Other.class, "o", "b int, a int",
                    Other::new);
            IllegalStateException refused = assertThrows(IllegalStateException.class,
                    () -> turned.create(objects, 16, range -> { }));
            assertTrue(refused.getMessage().contains("`a int, b int`"), refused.getMessage());
            ObjectType<Other> more = ObjectType.of(Other.class, Other.class, "o",
                    "a int, b int, c int", Other::new);
            more.create(objects, 24, range -> { });
        }
        try (ObjectHeap objects = ObjectHeap.open(path())) {
            ObjectType<Other> less = ObjectType.of(Other.class, Other.class, "o", "a int, b int",
                    Other::new);
            assertThrows(IllegalStateException.class,
                    () -> less.create(objects, 16, range -> { }));
        }
    }

    @Test
    void aTypeWithoutItsClassIsNamedInTheRefusal() {
        long handle;
        try (ObjectHeap objects = create()) {
            ObjectType<Other> gone = ObjectType.of(Other.class, Other.class, "com.example.Gone", "",
                    Other::new);
            handle = gone.create(objects, 16, range -> { }).handle();
            objects.directory().put("gone", objects.object(handle));
        }
        try (ObjectHeap objects = ObjectHeap.open(path())) {
            IllegalStateException refused = assertThrows(IllegalStateException.class,
                    () -> objects.directory().get("gone", Other.class));
            assertTrue(refused.getMessage().contains("com.example.Gone"), refused.getMessage());
        }
    }

    @Test
    void aHeapWithAnotherRootIsRefused() {
        try (TransactionalHeap heap = TransactionalHeap.createHeap(path(), BYTES)) {
            Transaction.create(heap, () -> heap.setRoot(heap.allocateMemoryBlock(24).handle()));
            assertThrows(IllegalArgumentException.class, () -> ObjectHeap.of(heap));
        }
    }

    /** Another class of objects. */
    static final class Other extends PersistentObject {
        static final ObjectType<Other> TYPE = ObjectType.of(Other.class, "nothing", Other::new);

        private Other(ObjectHeap objects, long handle) {
            super(objects, handle);
        }

        @Override
        protected void trace(Tracer tracer) {
        }
    }
}
