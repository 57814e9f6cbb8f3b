package io.entresol.collections;

import java.nio.ByteBuffer;
import java.util.function.LongConsumer;

/** Objects by their handles, the highest byte first. */
final class ReferenceCodec<T> implements Codec<T> {
    private final ObjectHeap objects;
    private final Class<T> type;
    private final String name;

    ReferenceCodec(ObjectHeap objects, Class<T> type) {
        this.objects = objects;
        this.type = type;
        boolean anything = type == Object.class || type == PersistentObject.class;
        this.name = anything ? Codecs.REFERENCE : Codecs.REFERENCE + " " + Types.of(type).name();
    }

    @Override
    public byte[] encode(T value) {
        long handle = value == null ? 0 : objects.handleOf(type.cast(value));
        return ByteBuffer.allocate(Long.BYTES).putLong(handle).array();
    }

    @Override
    public T decode(byte[] bytes) {
        return type.cast(objects.object(handle(bytes, 0)));
    }

    @Override
    public String name() {
        return name;
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
        handles.accept(handle(bytes, 0));
    }

    static long handle(byte[] bytes, int offset) {
        return ByteBuffer.wrap(bytes).getLong(offset);
    }
}
