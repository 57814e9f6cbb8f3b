package io.entresol.collections;

import java.util.List;

/** The codecs that headers of collections name. */
final class Codecs {
    private static final List<Codec<?>> PLAIN = List.of(Codec.STRING, Codec.BYTES, Codec.BOOLEAN,
            Codec.BYTE, Codec.CHARACTER, Codec.SHORT, Codec.INTEGER, Codec.LONG, Codec.FLOAT,
            Codec.DOUBLE, Codec.UUID);
    private static final String REFERENCE = "reference";

    private Codecs() {
    }

    /** The codec of that name; one of a program is known to those that it opens only. */
    static Codec<?> named(ObjectHeap objects, String name) {
        for (Codec<?> codec : PLAIN) {
            if (codec.name().equals(name)) {
                return codec;
            }
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
