package io.entresol.collections;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The codecs that headers of collections name: built-in codecs, and codecs of the program with
 * which it made or opened a collection since the heap was opened.
 */
final class Codecs {
    private static final List<Codec<?>> PLAIN = List.of(Codec.STRING, Codec.BYTES, Codec.BOOLEAN,
            Codec.BYTE, Codec.CHARACTER, Codec.SHORT, Codec.INTEGER, Codec.LONG, Codec.FLOAT,
            Codec.DOUBLE, Codec.UUID);
    /** The name of references to anything; behind it and a blank stands the type of others. */
    static final String REFERENCE = "reference";

    private final ObjectHeap objects;
    private final Map<String, Codec<?>> given = new ConcurrentHashMap<>();

    Codecs(ObjectHeap objects) {
        this.objects = objects;
    }

    /** Keeps a codec that the program uses. */
    void keep(Codec<?> codec) {
        if (!PLAIN.contains(codec)) {
            given.put(codec.name(), codec);
        }
    }

    /** The codec of that name. */
    Codec<?> named(String name) {
        for (Codec<?> codec : PLAIN) {
            if (codec.name().equals(name)) {
                return codec;
            }
        }
        Codec<?> known = given.get(name);
        if (known != null) {
            return known;
        }
        if (name.equals(objects.any().name())) {
            return objects.any();
        }
        if (name.equals(REFERENCE)) {
            return objects.reference(PersistentObject.class);
        }
        if (name.startsWith(REFERENCE + " ")) {
            String type = name.substring(REFERENCE.length() + 1);
            return objects.reference(Types.named(type, Codecs.class).declared());
        }
        throw new IllegalStateException("a collection was made with the codec `" + name + "`, which"
                + " is the program's own: open the collection with it first");
    }
}
