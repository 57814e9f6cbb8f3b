package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.heap.ConflictException;
import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import io.entresol.heap.Transaction;
import io.entresol.heap.TransactionalHeap;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.function.Supplier;
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
    void aTransactionMeetsANewTypeWhileAnotherOneThatMetOneGoesOn() throws Exception {
        // The younger one was told to abort and try again, as it would have waited for the older
        // one's end with a list that the older one might have wanted.
        try (ObjectHeap objects = create()) {
            PersistentArrayList<Long> list = PersistentArrayList.create(objects, Codec.LONG);
            CountDownLatch met = new CountDownLatch(1);
            CountDownLatch done = new CountDownLatch(1);
            FutureTask<Other> older = new FutureTask<>(() -> objects.run(() -> {
                Other made = named("first").create(objects, 16, range -> { });
                met.countDown();
                await(done);
                return made;
            }));
            new Thread(older).start();
            met.await();
            Other younger;
            try {
                younger = objects.run(() -> {
                    list.add(1L);
                    return named("second").create(objects, 16, range -> { });
                });
            } finally {
                done.countDown();
            }
            assertEquals(List.of(1L), list);
            assertNotSame(younger, older.get());
            assertSame(younger, objects.object(younger.handle()));
            assertEquals("", objects.heap().check());
        }
    }

    @Test
    void aRepeatableBodyComesThroughBesideAnOlderTransactionThatChangesTheDirectory()
            throws Exception {
        try (ObjectHeap objects = create()) {
            PersistentArrayList<Long> list = PersistentArrayList.create(objects, Codec.LONG);
            CountDownLatch held = new CountDownLatch(1);
            CountDownLatch done = new CountDownLatch(1);
            FutureTask<Void> older = new FutureTask<>(() -> {
                objects.run(() -> {
                    objects.directory().put("older", list);
                    held.countDown();
                    await(done);
                    list.add(1L);
                });
                return null;
            });
            new Thread(older).start();
            held.await();
            int[] attempts = {0};
            Supplier<Boolean> body = () -> {
                if (++attempts[0] == 3) {
                    done.countDown();
                }
                list.add(2L);
                objects.directory().put("younger", list);
                return true;
            };
            assertThrows(ConflictException.class, () -> objects.run(body));
            assertTrue(objects.runRepeatable(body));
            older.get();
            assertTrue(attempts[0] >= 3, attempts[0] + " attempts");
            assertEquals(List.of(1L, 2L), list);
            assertEquals(List.of("older", "younger"), objects.directory().names());
        }
    }

    @Test
    void aTypeThatAnUndoneTransactionMetIsUsedByLaterOnes() {
        long handle;
        try (ObjectHeap objects = create()) {
            assertThrows(IllegalStateException.class, () -> objects.run(() -> {
                Other.TYPE.create(objects, 16, range -> { });
                throw new IllegalStateException("undo");
            }));
            Other other = Other.TYPE.create(objects, 16, range -> { });
            objects.directory().put("other", other);
            handle = other.handle();
        }
        try (ObjectHeap objects = ObjectHeap.open(path())) {
            assertEquals(handle, objects.directory().get("other", Other.class).handle());
            assertEquals(0, objects.collect().freedBlocks());
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

    private static ObjectType<Other> named(String name) {
        return ObjectType.of(Other.class, Other.class, name, "", Other::new);
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException failure) {
            throw new IllegalStateException(failure);
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
