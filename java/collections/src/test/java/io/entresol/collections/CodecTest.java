package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class CodecTest {
    @TempDir
    Path folder;

    @Test
    void bytesAreOrderedAsNumbersAre() {
        ordered(Codec.BOOLEAN, false, true);
        ordered(Codec.BYTE, Byte.MIN_VALUE, (byte) -1, (byte) 0, (byte) 1, Byte.MAX_VALUE);
        ordered(Codec.SHORT, Short.MIN_VALUE, (short) -1, (short) 0, (short) 300, Short.MAX_VALUE);
        ordered(Codec.CHARACTER, '\0', 'a', 'b', '\u8000', '\uffff');
        ordered(Codec.INTEGER, Integer.MIN_VALUE, -300, -1, 0, 1, 300, Integer.MAX_VALUE);
        ordered(Codec.LONG, Long.MIN_VALUE, -300L, -1L, 0L, 1L, 300L, Long.MAX_VALUE);
        ordered(Codec.FLOAT, Float.NEGATIVE_INFINITY, -Float.MAX_VALUE, -1f, -Float.MIN_VALUE, -0f,
                0f, Float.MIN_VALUE, 1f, 1.5f, Float.MAX_VALUE, Float.POSITIVE_INFINITY, Float.NaN);
        ordered(Codec.DOUBLE, Double.NEGATIVE_INFINITY, -Double.MAX_VALUE, -1.0, -Double.MIN_VALUE,
                -0.0, 0.0, Double.MIN_VALUE, 1.0, 1.5, Double.MAX_VALUE, Double.POSITIVE_INFINITY,
                Double.NaN);
        ordered(Codec.UUID, new UUID(0, 1), new UUID(1, 0), new UUID(1, -1), new UUID(-1, 0));
        ordered(Codec.STRING, "", "a", "aa", "b", "\u00e4", "\uffff", "\ud83d\ude00");
    }

    @Test
    void halfOfASurrogatePairIsRefused() {
        // It became a question mark, so that keys which differ were one.
        for (String text : List.of("\ud83d", "a\ude00b", "\ude00\ud83d", "\ud83d\ud83d\ude00")) {
            IllegalArgumentException refused = assertThrows(
                    IllegalArgumentException.class, () -> Codec.STRING.encode(text));
            assertTrue(refused.getMessage().contains("U+D"), refused.getMessage());
        }
        try (ObjectHeap objects = Heaps.create(folder)) {
            assertThrows(IllegalArgumentException.class,
                    () -> PersistentString.of(objects, "\ud83d"));
            assertThrows(IllegalArgumentException.class,
                    () -> objects.directory().get("\ud83d", Object.class));
        }
    }

    @Test
    void anythingComesBackAsItWas() {
        try (ObjectHeap objects = ObjectHeap.create(folder.resolve("heap").toString(), 16L << 20,
                HeapOptions.DEFAULT.durability(Durability.NONE))) {
            Codec<Object> any = objects.any();
            Pair pair = Pair.create(objects);
            for (Object value : Arrays.asList(null, true, (byte) 3, 'c', (short) -4, 5, -6L, 1.5f,
                    -2.5, "text", "", new UUID(7, 8), pair)) {
                assertEquals(value, any.decode(any.encode(value)));
            }
            byte[] bytes = {1, 2, 3};
            assertArrayEquals(bytes, (byte[]) any.decode(any.encode(bytes)));
            assertThrows(ClassCastException.class, () -> any.encode(new Object()));
            List<Long> told = new ArrayList<>();
            any.references(any.encode(pair), told::add);
            any.references(any.encode(5L), told::add);
            assertEquals(List.of(pair.handle()), told);
        }
    }

    @Test
    void referencesAreToOneClass() {
        try (ObjectHeap objects = ObjectHeap.create(folder.resolve("heap").toString(), 16L << 20,
                HeapOptions.DEFAULT.durability(Durability.NONE))) {
            Codec<Pair> pairs = objects.reference(Pair.class);
            Pair pair = Pair.create(objects);
            assertSame(pair, pairs.decode(pairs.encode(pair)));
            assertSame(null, pairs.decode(pairs.encode(null)));
            assertEquals("reference io.entresol.collections.Pair", pairs.name());
            assertThrows(IllegalArgumentException.class, () -> objects.reference(String.class));
        }
    }

    @Test
    void referencesToAnythingAreFollowedAfterReopening() {
        // Their name had a blank at its end, which was taken for that of a type without a name.
        for (Class<?> type : List.of(PersistentObject.class, Object.class)) {
            for (String name : List.of("reference", "reference ")) {
                Path place = folder.resolve(type.getSimpleName() + name.length());
                try (ObjectHeap objects = create(place)) {
                    PersistentArrayList<Object> list =
                            PersistentArrayList.create(objects, anything(objects, type, name));
                    list.add(Pair.create(objects));
                    list.add(null);
                    objects.directory().put("list", list);
                }
                try (ObjectHeap objects = ObjectHeap.open(place.toString())) {
                    assertEquals(0, objects.collect().freedBlocks());
                    List<?> list = objects.directory().get("list", PersistentArrayList.class);
                    assertSame(Pair.class, list.get(0).getClass());
                    assertSame(null, list.get(1));
                    assertEquals("reference", objects.reference(type).name());
                    assertSame(list, PersistentArrayList.open(objects,
                            ((PersistentArrayList<?>) list).handle(), objects.reference(type)));
                }
            }
        }
    }

    private static ObjectHeap create(Path place) {
        return ObjectHeap.create(
                place.toString(), 16L << 20, HeapOptions.DEFAULT.durability(Durability.NONE));
    }

    /** References by the name that a heap has for them. */
    private static Codec<Object> anything(ObjectHeap objects, Class<?> type, String name) {
        Codec<?> codec = objects.reference(type);
        return new Codec<>() {
            @Override
            public byte[] encode(Object value) {
                return encoded(codec, value);
            }

            @Override
            public Object decode(byte[] bytes) {
                return codec.decode(bytes);
            }

            @Override
            public String name() {
                return name;
            }

            @Override
            public boolean takesNull() {
                return true;
            }
        };
    }

    @SuppressWarnings("unchecked")
    private static <T> byte[] encoded(Codec<T> codec, Object value) {
        return codec.encode((T) value);
    }

    @SafeVarargs
    private static <T> void ordered(Codec<T> codec, T... values) {
        for (int index = 0; index < values.length; index++) {
            byte[] bytes = codec.encode(values[index]);
            assertEquals(values[index], codec.decode(bytes), codec.name());
            if (index > 0) {
                byte[] before = codec.encode(values[index - 1]);
                assertEquals(-1, Integer.signum(Arrays.compareUnsigned(before, bytes)),
                        codec.name() + " " + values[index - 1] + " " + values[index]);
            }
        }
    }
}
