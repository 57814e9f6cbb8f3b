package io.entresol.collections;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.UUID;
import java.util.function.LongConsumer;

/** A byte for the class, then the value as the codec of that class encodes it. */
final class AnyCodec implements Codec<Object> {
    private static final byte NULL = 0;
    private static final byte REFERENCE = 1;
    private static final byte FIRST = 2;

    /** A class and its codec; the place in the list is part of the layout. */
    private static final List<Tagged<?>> TAGGED = List.of(
            new Tagged<>(Boolean.class, Codec.BOOLEAN),
            new Tagged<>(Byte.class, Codec.BYTE),
            new Tagged<>(Character.class, Codec.CHARACTER),
            new Tagged<>(Short.class, Codec.SHORT),
            new Tagged<>(Integer.class, Codec.INTEGER),
            new Tagged<>(Long.class, Codec.LONG),
            new Tagged<>(Float.class, Codec.FLOAT),
            new Tagged<>(Double.class, Codec.DOUBLE),
            new Tagged<>(String.class, Codec.STRING),
            new Tagged<>(byte[].class, Codec.BYTES),
            new Tagged<>(UUID.class, Codec.UUID));

    private final ObjectHeap objects;

    AnyCodec(ObjectHeap objects) {
        this.objects = objects;
    }

    @Override
    public byte[] encode(Object value) {
        if (value == null) {
            return new byte[] {NULL};
        }
        if (value instanceof PersistentObject) {
            return ByteBuffer.allocate(1 + Long.BYTES).put(REFERENCE)
                    .putLong(objects.handleOf(value)).array();
        }
        for (int index = 0; index < TAGGED.size(); index++) {
            if (TAGGED.get(index).type.isInstance(value)) {
                byte[] bytes = TAGGED.get(index).encode(value);
                return ByteBuffer.allocate(1 + bytes.length).put((byte) (FIRST + index))
                        .put(bytes).array();
            }
        }
        throw new ClassCastException(value.getClass().getName() + " is neither persistent nor one"
                + " of the classes that are stored as values");
    }

    @Override
    public Object decode(byte[] bytes) {
        switch (bytes[0]) {
            case NULL:
                return null;
            case REFERENCE:
                return objects.object(ReferenceCodec.handle(bytes, 1));
            default:
                byte[] rest = java.util.Arrays.copyOfRange(bytes, 1, bytes.length);
                return TAGGED.get(bytes[0] - FIRST).codec.decode(rest);
        }
    }

    @Override
    public String name() {
        return "any";
    }

    @Override
    public boolean takesNull() {
        return true;
    }

    @Override
    public ObjectHeap heap() {
        return objects;
    }

    @Override
    public void references(byte[] bytes, LongConsumer handles) {
        if (bytes[0] == REFERENCE) {
            handles.accept(ReferenceCodec.handle(bytes, 1));
        }
    }

    private static final class Tagged<T> {
        private final Class<T> type;
        private final Codec<T> codec;

        Tagged(Class<T> type, Codec<T> codec) {
            this.type = type;
            this.codec = codec;
        }

        byte[] encode(Object value) {
            return codec.encode(type.cast(value));
        }
    }
}
