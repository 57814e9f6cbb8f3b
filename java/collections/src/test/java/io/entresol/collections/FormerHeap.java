package io.entresol.collections;

import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;

/**
 * A heap with an object of each kind. Its file, compressed and in letters, is a resource of the
 * tests, as the build made it that first had one. A change of the format makes another file beside
 * it: {@code FormerHeap HEAP LETTERS}.
 */
final class FormerHeap {
    private static final long BYTES = 8L << 20;

    private FormerHeap() {
    }

    /** Puts one of each kind into the directory. */
    static void fill(ObjectHeap objects) {
        ObjectDirectory directory = objects.directory();
        PersistentTreeMap<String, Object> tree =
                PersistentTreeMap.create(objects, Codec.STRING, objects.any());
        tree.putAll(Map.of("one", 1, "two", "zwei", "three", 3.0));
        directory.put("tree map", tree);
        PersistentHashMap<Long, String> hash =
                PersistentHashMap.create(objects, Codec.LONG, Codec.STRING);
        PersistentSkipListMap<Long, String> skip =
                PersistentSkipListMap.create(objects, Codec.LONG, Codec.STRING);
        for (long key = 0; key < 50; key++) {
            hash.put(key, "value " + key);
            skip.put(key, "value " + key);
        }
        directory.put("hash map", hash);
        directory.put("skip list map", skip);
        List<Collection<String>> collections = List.of(
                PersistentTreeSet.create(objects, Codec.STRING),
                PersistentHashSet.create(objects, Codec.STRING),
                PersistentArrayList.create(objects, Codec.STRING),
                PersistentLinkedList.create(objects, Codec.STRING),
                PersistentLinkedQueue.create(objects, Codec.STRING));
        for (Collection<String> collection : collections) {
            for (int element = 0; element < 70; element++) {
                collection.add("element " + element);
            }
            directory.put(collection.getClass().getSimpleName(), collection);
        }
        directory.put("long", PersistentLong.of(objects, -7));
        directory.put("boolean", PersistentBoolean.of(objects, true));
        directory.put("string", PersistentString.of(objects, "größer"));
        directory.put("uuid", PersistentUUID.of(objects, new UUID(1, 2)));
        directory.put("ints", PersistentIntArray.of(objects, 1, 2, 3));
        directory.put("doubles", PersistentImmutableDoubleArray.of(objects, 0.5, -2));
        directory.put("array", PersistentArray.of(objects, "a", 2L, null));
        directory.put("constants", PersistentImmutableArray.of(objects, "b", 3));
        directory.put("tuple", PersistentTuple2.of(objects, "c", 4));
        directory.put("reference", PersistentAtomicReference.of(objects, "d"));
        directory.put("buffer", PersistentByteBuffer.wrap(
                PersistentByteArray.of(objects, (byte) 5, (byte) 6, (byte) 7)).position(1));
        Pair pair = Pair.create(objects);
        pair.first(pair);
        directory.put("pair", pair);
    }

    /** What an object shows of itself, the same in each heap. */
    static String shown(Object object) {
        Object shown = object instanceof Map<?, ?> map ? new TreeMap<>(map)
                : object instanceof Set<?> set ? new TreeSet<>(set)
                : object instanceof Collection<?> all ? List.copyOf(all)
                : object instanceof PersistentIntArray ints ? List.of(ints.get(0), ints.get(2))
                : object instanceof PersistentImmutableDoubleArray doubles
                        ? List.of(doubles.get(0), doubles.get(1))
                : object instanceof PersistentAtomicReference<?> reference ? reference.get()
                : object instanceof PersistentByteBuffer buffer
                        ? List.of(buffer.position(), buffer.get(0), buffer.get(2))
                : object instanceof Pair pair ? pair.first() == pair && pair.second() == null
                : object;
        return object.getClass().getName() + " " + shown;
    }

    /** Makes the file of the heap from its letters. */
    static void unpack(InputStream letters, Path file) throws IOException {
        byte[] packed = Base64.getMimeDecoder().decode(letters.readAllBytes());
        try (InputStream unpacked = new GZIPInputStream(new ByteArrayInputStream(packed))) {
            Files.copy(unpacked, file);
        }
    }

    public static void main(String[] arguments) throws IOException {
        Path file = Path.of(arguments[0]);
        try (ObjectHeap objects = ObjectHeap.create(file.toString(), BYTES,
                HeapOptions.DEFAULT.durability(Durability.NONE))) {
            fill(objects);
        }
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (GZIPOutputStream packing = new GZIPOutputStream(packed)) {
            Files.copy(file, packing);
        }
        String letters = Base64.getMimeEncoder(98, new byte[] {'\n'})
                .encodeToString(packed.toByteArray());
        Files.write(Path.of(arguments[1]), (letters + "\n").getBytes(StandardCharsets.US_ASCII));
    }
}
