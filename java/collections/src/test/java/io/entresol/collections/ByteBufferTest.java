package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Buffers in a heap against those of Java, method by method. */
final class ByteBufferTest {
    private static final int CAPACITY = 24;
    private static final int STEPS = 3000;
    /** What is of the heap, or tells the class. */
    private static final Set<String> OWN = Set.of("array", "toString", "trace");

    @TempDir
    Path folder;

    @Test
    void buffersDoWhatThoseOfJavaDo() throws Exception {
        List<Method[]> methods = methods();
        Set<String> names = new TreeSet<>();
        methods.forEach(pair -> names.add(pair[0].getName()));
        assertTrue(names.size() >= 33, "too few methods are compared: " + names);
        long first = Long.getLong("entresol.seed", 1);
        try (ObjectHeap objects = Heaps.create(folder)) {
            for (long seed = first; seed < first + 8; seed++) {
                Walk walk = new Walk(objects, new Random(seed), "-Dentresol.seed=" + seed);
                for (int step = 0; step < STEPS; step++) {
                    walk.step(methods);
                }
            }
            assertEquals("", objects.heap().check());
        }
    }

    @Test
    void positionLimitMarkAndOrderAreFoundAgain() {
        try (ObjectHeap objects = Heaps.create(folder)) {
            PersistentByteBuffer buffer = PersistentByteBuffer.allocate(objects, 16);
            buffer.order(ByteOrder.LITTLE_ENDIAN).putInt(1).mark().putInt(2).limit(12);
            objects.directory().put("buffer", buffer);
            objects.directory().put("view", buffer.asReadOnlyBuffer());
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            assertEquals(0, objects.collect().freedBlocks());
            PersistentByteBuffer buffer =
                    objects.directory().get("buffer", PersistentByteBuffer.class);
            assertEquals(12, buffer.limit());
            assertEquals(8, buffer.position());
            assertEquals(2, buffer.reset().getInt());
            assertEquals(1, buffer.getInt(0));
            assertArrayEquals(
                    new byte[] {1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                    buffer.array().toArray());
            PersistentByteBuffer view =
                    objects.directory().get("view", PersistentByteBuffer.class);
            assertTrue(view.isReadOnly());
            assertEquals(ByteOrder.BIG_ENDIAN, view.order());
            buffer.put(0, (byte) 9);
            assertEquals(9, view.get(0));
        }
    }

    @Test
    void anAbortTakesBytesAndPositionBack() {
        try (ObjectHeap objects = Heaps.create(folder)) {
            PersistentByteArray array = PersistentByteArray.of(objects, (byte) 1, (byte) 2);
            PersistentByteBuffer buffer = PersistentByteBuffer.wrap(array);
            assertThrows(IllegalStateException.class, () -> objects.run(() -> {
                buffer.put((byte) 5).put((byte) 6);
                throw new IllegalStateException("undo");
            }));
            assertEquals(0, buffer.position());
            assertEquals(1, array.get(0));
            assertSame(array, buffer.array());
        }
    }

    /** Public methods with those of {@link ByteBuffer} that have the same name and parameters. */
    private static List<Method[]> methods() {
        List<Method[]> methods = new ArrayList<>();
        for (Method own : PersistentByteBuffer.class.getDeclaredMethods()) {
            if (!Modifier.isPublic(own.getModifiers()) || Modifier.isStatic(own.getModifiers())
                    || own.isBridge() || OWN.contains(own.getName())) {
                continue;
            }
            Class<?>[] types = own.getParameterTypes();
            for (int index = 0; index < types.length; index++) {
                types[index] =
                        types[index] == PersistentByteBuffer.class ? ByteBuffer.class : types[index];
            }
            try {
                methods.add(new Method[] {own, ByteBuffer.class.getMethod(own.getName(), types)});
            } catch (NoSuchMethodException failure) {
                throw new AssertionError(own + " is no method of ByteBuffer", failure);
            }
        }
        methods.sort(Comparator.comparing(pair -> pair[0].toString()));
        return methods;
    }

    /** Calls of methods that a seed chooses, on pairs of buffers. */
    private static final class Walk {
        private static final int BUFFERS = 6;

        private final Random random;
        private final String replay;
        private final List<PersistentByteBuffer> own = new ArrayList<>();
        private final List<ByteBuffer> java = new ArrayList<>();

        Walk(ObjectHeap objects, Random random, String replay) {
            this.random = random;
            this.replay = replay;
            own.add(PersistentByteBuffer.allocate(objects, CAPACITY));
            java.add(ByteBuffer.allocate(CAPACITY));
            byte[] bytes = new byte[CAPACITY];
            random.nextBytes(bytes);
            own.add(PersistentByteBuffer.wrap(PersistentByteArray.of(objects, bytes), 3, 17));
            java.add(ByteBuffer.wrap(bytes, 3, 17));
        }

        void step(List<Method[]> methods) throws Exception {
            Method[] pair = methods.get(random.nextInt(methods.size()));
            int chosen = random.nextInt(own.size());
            Object[] mine = new Object[pair[0].getParameterCount()];
            Object[] theirs = new Object[mine.length];
            for (int index = 0; index < mine.length; index++) {
                choose(pair[0].getParameterTypes()[index], mine, theirs, index);
            }
            String what = replay + ": " + pair[0] + Arrays.deepToString(mine);
            Object got = call(pair[0], own.get(chosen), mine);
            Object expected = call(pair[1], java.get(chosen), theirs);
            if (expected instanceof ByteBuffer && got instanceof PersistentByteBuffer) {
                boolean same = expected == java.get(chosen);
                assertEquals(same, got == own.get(chosen), what);
                if (!same) {
                    keep((PersistentByteBuffer) got, (ByteBuffer) expected);
                }
            } else if (expected instanceof Class && own.get(chosen).isReadOnly()) {
                // Which of two mistakes is told differs between versions of Java.
                assertTrue(got instanceof Class, what);
            } else {
                assertEquals(expected, got, what);
            }
            for (int index = 0; index < mine.length; index++) {
                if (mine[index] instanceof byte[]) {
                    assertArrayEquals((byte[]) theirs[index], (byte[]) mine[index], what);
                }
            }
            for (int index = 0; index < own.size(); index++) {
                same(java.get(index), own.get(index), what);
            }
        }

        /** The same argument for both. */
        private void choose(Class<?> type, Object[] mine, Object[] theirs, int index) {
            if (type == int.class) {
                mine[index] = random.nextInt(CAPACITY + 4) - 2;
            } else if (type == byte[].class) {
                byte[] bytes = new byte[random.nextInt(8)];
                random.nextBytes(bytes);
                mine[index] = bytes;
                theirs[index] = bytes.clone();
                return;
            } else if (type == ByteBuffer.class) {
                byte[] bytes = new byte[random.nextInt(8)];
                random.nextBytes(bytes);
                mine[index] = ByteBuffer.wrap(bytes);
                theirs[index] = ByteBuffer.wrap(bytes);
                return;
            } else if (type == ByteOrder.class) {
                mine[index] = random.nextBoolean()
                        ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN;
            } else if (type == PersistentByteBuffer.class || type == Object.class) {
                int chosen = random.nextInt(own.size());
                mine[index] = own.get(chosen);
                theirs[index] = java.get(chosen);
                return;
            } else {
                mine[index] = number(type);
            }
            theirs[index] = mine[index];
        }

        private Object number(Class<?> type) {
            long bits = random.nextLong();
            if (type == byte.class) {
                return (byte) bits;
            } else if (type == short.class) {
                return (short) bits;
            } else if (type == char.class) {
                return (char) bits;
            } else if (type == long.class) {
                return bits;
            } else if (type == float.class) {
                return random.nextFloat();
            }
            return random.nextDouble();
        }

        private void keep(PersistentByteBuffer mine, ByteBuffer theirs) {
            if (own.size() == BUFFERS) {
                int gone = 2 + random.nextInt(BUFFERS - 2);
                own.remove(gone);
                java.remove(gone);
            }
            own.add(mine);
            java.add(theirs);
        }

        private static Object call(Method method, Object on, Object[] arguments)
                throws Exception {
            try {
                return method.invoke(on, arguments);
            } catch (InvocationTargetException failure) {
                return failure.getCause().getClass();
            }
        }

        private static void same(ByteBuffer expected, PersistentByteBuffer found, String what) {
            assertEquals(expected.position(), found.position(), what);
            assertEquals(expected.limit(), found.limit(), what);
            assertEquals(expected.capacity(), found.capacity(), what);
            ByteBuffer all = expected.duplicate();
            all.clear();
            byte[] bytes = new byte[all.capacity()];
            all.get(bytes);
            byte[] mine = new byte[bytes.length];
            int limit = found.limit();
            found.limit(found.capacity()).get(0, mine);
            found.limit(limit);
            assertArrayEquals(bytes, mine, what);
        }
    }
}
