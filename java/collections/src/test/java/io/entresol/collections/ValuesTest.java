package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Boxes, texts, arrays, tuples and references. */
final class ValuesTest {
    @TempDir
    Path folder;
    private ObjectHeap objects;

    @BeforeEach
    void create() {
        objects = Heaps.create(folder);
    }

    @AfterEach
    void close() {
        assertEquals("", objects.heap().check());
        objects.close();
    }

    private void reopen() {
        objects.close();
        objects = Heaps.open(folder);
    }

    @Test
    void arraysShowTheirElementsAndFollowNoCircle() {
        PersistentArray<Object> array = PersistentArray.of(objects, "a", 1L, null, new byte[] {1});
        array.set(2, array);
        assertEquals("[a, 1, PersistentArray of 4, [1]]", array.toString());
        assertEquals("[b]", PersistentImmutableArray.of(objects, "b").toString());
        String shown = PersistentArray.create(objects, 1_000).toString();
        assertTrue(shown.endsWith("1000 elements]") && shown.length() < 1_000, shown);
        assertTrue(objects.heap().statistics().toString().contains("blocks"));
    }

    @Test
    void boxesAreEqualAndOrderedAsTheirValues() {
        UUID uuid = new UUID(1, 2);
        List<PersistentBox<?>> boxes = List.of(
                PersistentBoolean.of(objects, true), PersistentByte.of(objects, (byte) -3),
                PersistentCharacter.of(objects, '\u20ac'), PersistentShort.of(objects, (short) -4),
                PersistentInteger.of(objects, -5), PersistentLong.of(objects, 1L << 40),
                PersistentFloat.of(objects, 1.5f), PersistentDouble.of(objects, -2.5),
                PersistentString.of(objects, "\u00e4\ud83d\ude00"),
                PersistentString.of(objects, ""), PersistentUUID.of(objects, uuid));
        List<?> values = List.of(true, (byte) -3, '\u20ac', (short) -4, -5, 1L << 40, 1.5f, -2.5,
                "\u00e4\ud83d\ude00", "", uuid);
        for (int index = 0; index < boxes.size(); index++) {
            objects.directory().put(String.valueOf(index), boxes.get(index));
        }
        reopen();
        for (int index = 0; index < values.size(); index++) {
            PersistentBox<?> box =
                    objects.directory().get(String.valueOf(index), PersistentBox.class);
            assertEquals(values.get(index), box.value());
            assertEquals(values.get(index).hashCode(), box.hashCode());
            assertEquals(values.get(index).toString(), box.toString());
        }
        PersistentLong five = PersistentLong.of(objects, 5);
        assertEquals(five, PersistentLong.of(objects, 5));
        assertNotEquals(five, PersistentLong.of(objects, 6));
        assertNotEquals(five, PersistentInteger.of(objects, 5));
        assertTrue(five.compareTo(PersistentLong.of(objects, 6)) < 0);
        assertTrue(five.compareWith(4L) > 0);
        assertTrue(five.equatesWith(5L));
        assertFalse(five.equatesWith(6L));
    }

    @Test
    void arraysOfPrimitivesKeepTheirElements() {
        PersistentLongArray longs = PersistentLongArray.create(objects, 3);
        longs.set(2, -7);
        objects.directory().put("longs", longs);
        objects.directory().put("booleans", PersistentBooleanArray.of(objects, true, false, true));
        objects.directory().put("chars", PersistentImmutableCharArray.of(objects, 'a', '\uffff'));
        objects.directory().put("doubles", PersistentDoubleArray.of(objects));
        reopen();
        longs = objects.directory().get("longs", PersistentLongArray.class);
        assertArrayEquals(new long[] {0, 0, -7}, longs.toArray());
        assertArrayEquals(new boolean[] {true, false, true},
                objects.directory().get("booleans", PersistentBooleanArray.class).toArray());
        PersistentImmutableCharArray chars =
                objects.directory().get("chars", PersistentImmutableCharArray.class);
        assertEquals(PersistentImmutableCharArray.of(objects, 'a', '\uffff'), chars);
        assertNotEquals(PersistentImmutableCharArray.of(objects, 'a', 'b'), chars);
        assertEquals(0,
                objects.directory().get("doubles", PersistentDoubleArray.class).length());
    }

    @Test
    void anIndexOutsideAnArrayIsRefused() {
        PersistentByteArray bytes = PersistentByteArray.of(objects, (byte) 1, (byte) 2);
        for (int index : new int[] {-1, 2, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
            assertThrows(IndexOutOfBoundsException.class, () -> bytes.get(index));
            assertThrows(IndexOutOfBoundsException.class, () -> bytes.set(index, (byte) 0));
        }
        assertThrows(NegativeArraySizeException.class,
                () -> PersistentIntArray.create(objects, -1));
        assertThrows(IndexOutOfBoundsException.class,
                () -> PersistentArray.create(objects, 1).get(1));
    }

    @Test
    void arraysAreCopiedAsThoseOfJava() {
        PersistentIntArray source = PersistentIntArray.of(objects, 1, 2, 3, 4, 5);
        assertArrayEquals(new int[] {1, 2}, PersistentArrays.copyOf(source, 2).toArray());
        assertArrayEquals(new int[] {1, 2, 3, 4, 5, 0, 0},
                PersistentArrays.copyOf(source, 7).toArray());
        assertArrayEquals(new int[] {4, 5, 0},
                PersistentArrays.copyOfRange(source, 3, 6).toArray());
        assertThrows(IndexOutOfBoundsException.class,
                () -> PersistentArrays.copyOfRange(source, 6, 7));
        PersistentArrays.arrayCopy(source, 0, source, 1, 4);
        assertArrayEquals(new int[] {1, 1, 2, 3, 4}, source.toArray());
        PersistentImmutableIntArray never = PersistentImmutableIntArray.of(objects, 9, 9);
        PersistentArrays.arrayCopy(never, 0, source, 3, 2);
        assertArrayEquals(new int[] {1, 1, 2, 9, 9}, source.toArray());
        assertThrows(IllegalArgumentException.class,
                () -> PersistentArrays.arrayCopy(source, 0, never, 0, 1));
        assertThrows(ArrayStoreException.class, () -> PersistentArrays.arrayCopy(
                source, 0, PersistentLongArray.create(objects, 1), 0, 1));
        byte[] bytes = PersistentArrays.toByteArray(source);
        assertArrayEquals(source.toArray(), PersistentArrays.fromByteArray(
                objects, PersistentIntArray.class, bytes).toArray());
        assertThrows(IllegalArgumentException.class, () -> PersistentArrays.fromByteArray(
                objects, PersistentIntArray.class, new byte[7]));
    }

    @Test
    void arraysHoldAnything() {
        PersistentArray<Object> array = PersistentArray.create(objects, 4);
        Pair pair = Pair.create(objects);
        array.set(0, pair);
        array.set(1, "text");
        array.set(2, 5L);
        objects.directory().put("array", array);
        PersistentImmutableArray<String> never = PersistentImmutableArray.of(objects, "a", null);
        assertEquals(never, PersistentImmutableArray.of(objects, "a", null));
        objects.directory().put("never", never);
        long handle = pair.handle();
        reopen();
        // Garbage is the array that was compared, with its text.
        assertEquals(2, objects.collect().freedBlocks());
        array = cast(objects.directory().get("array", PersistentArray.class));
        assertEquals(handle, ((Pair) array.get(0)).handle());
        assertArrayEquals(new Object[] {array.get(0), "text", 5L, null}, array.toArray());
        assertArrayEquals(new Object[] {"a", null},
                objects.directory().get("never", PersistentImmutableArray.class).toArray());
        PersistentArray<Object> more = PersistentArrays.copyOf(array, 5);
        assertSame(array.get(0), more.get(0));
        assertThrows(ClassCastException.class, () -> more.set(0, new Object()));
        assertSame(array.get(0), more.get(0));
    }

    @Test
    void tuplesKeepElementsOfEachType() {
        PersistentTuple3<String, Long, Pair> tuple =
                PersistentTuple3.of(objects, "one", 2L, Pair.create(objects));
        tuple._2(tuple._2() + 1);
        tuple._3(null);
        objects.directory().put("tuple", tuple);
        reopen();
        assertEquals(2, objects.collect().freedBlocks(), "what was replaced");
        PersistentTuple3<String, Long, Pair> same =
                cast(objects.directory().get("tuple", PersistentTuple3.class));
        assertEquals("one", same._1());
        assertEquals(3L, same._2());
        assertNull(same._3());
        assertEquals("(one, 3, null)", same.toString());
        assertEquals(PersistentTuple3.of(objects, "one", 3L, null), same);
        assertNotEquals(PersistentImmutableTuple3.of(objects, "one", 3L, null), same);
        PersistentImmutableTuple22<Integer, Integer, Integer, Integer, Integer, Integer, Integer,
                Integer, Integer, Integer, Integer, Integer, Integer, Integer, Integer, Integer,
                Integer, Integer, Integer, Integer, Integer, Integer> large =
                PersistentImmutableTuple22.of(objects, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                        14, 15, 16, 17, 18, 19, 20, 21, 22);
        assertEquals(22, large.size());
        assertEquals(22, large._22());
        assertEquals(1, large._1());
    }

    @Test
    void aReferenceIsSwappedForWhatItIs() {
        Pair pair = Pair.create(objects);
        PersistentAtomicReference<Object> reference = PersistentAtomicReference.of(objects, "a");
        assertTrue(reference.compareAndSet("a", pair));
        assertFalse(reference.compareAndSet("a", "b"));
        assertFalse(reference.compareAndSet(Pair.create(objects), "b"));
        assertSame(pair, reference.getAndSet(null));
        assertTrue(reference.compareAndSet(null, 1000));
        assertThrows(IllegalStateException.class, () -> objects.run(() -> {
            reference.set("undone");
            throw new IllegalStateException();
        }));
        assertEquals(1000, reference.get());
    }

    @SuppressWarnings("unchecked")
    private static <T> T cast(Object object) {
        return (T) object;
    }
}
