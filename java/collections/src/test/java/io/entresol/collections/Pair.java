package io.entresol.collections;

/** Two references: the smallest class of objects that can make cycles. */
final class Pair extends PersistentObject {
    static final ObjectType<Pair> TYPE =
            ObjectType.of(Pair.class, "first object, second object", Pair::new);

    private static final long FIRST_AT = HEADER_BYTES;
    private static final long SECOND_AT = HEADER_BYTES + Long.BYTES;
    private static final long BYTES = HEADER_BYTES + 2 * Long.BYTES;

    private Pair(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    static Pair create(ObjectHeap objects) {
        return TYPE.create(objects, BYTES, range -> { });
    }

    Pair first() {
        return reference(FIRST_AT);
    }

    Pair second() {
        return reference(SECOND_AT);
    }

    void first(Pair pair) {
        block().setLong(FIRST_AT, pair == null ? 0 : pair.handle());
    }

    void second(Pair pair) {
        block().setLong(SECOND_AT, pair == null ? 0 : pair.handle());
    }

    @Override
    protected void trace(Tracer tracer) {
        tracer.object(block().getLong(FIRST_AT));
        tracer.object(block().getLong(SECOND_AT));
    }
}
