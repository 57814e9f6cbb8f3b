package io.entresol.collections;

import java.util.Objects;

/**
 * A reference to anything (a persistent object, a value such as a string or a box of Java, or null)
 * that threads may share. What is stored inside a transaction is seen by others at once, and is
 * taken back if that is undone.
 */
public final class PersistentAtomicReference<T> extends PersistentObject {
    @SuppressWarnings("rawtypes")
    static final ObjectType<PersistentAtomicReference> TYPE = ObjectType.of(
            PersistentAtomicReference.class, "value any", PersistentAtomicReference::new);

    private static final long VALUE_AT = HEADER_BYTES;

    private PersistentAtomicReference(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Makes one with that value. */
    @SuppressWarnings("unchecked")
    public static <T> PersistentAtomicReference<T> of(ObjectHeap objects, T value) {
        return (PersistentAtomicReference<T>) Elements.create(TYPE, objects, value);
    }

    /** The value. */
    public T get() {
        return objects().read(() -> Cell.value(objects(), block().getLongVolatile(VALUE_AT)));
    }

    /** Changes the value. */
    public void set(T value) {
        objects().run(() -> block().setLongVolatile(VALUE_AT, Cell.of(objects(), value)));
    }

    /** Changes the value; what it was. */
    public T getAndSet(T value) {
        return objects().run(() -> {
            long cell = Cell.of(objects(), value);
            while (true) {
                long now = block().getLongVolatile(VALUE_AT);
                if (block().compareAndSetLong(VALUE_AT, now, cell)) {
                    return Cell.value(objects(), now);
                }
            }
        });
    }

    /**
     * Changes the value if it is {@code expected}: the same persistent object, or an equal value.
     * Whether it was.
     */
    public boolean compareAndSet(T expected, T value) {
        return objects().run(() -> {
            long cell = 0;
            boolean made = false;
            while (true) {
                long now = block().getLongVolatile(VALUE_AT);
                if (!isSame(Cell.value(objects(), now), expected)) {
                    return false;
                }
                if (!made) {
                    cell = Cell.of(objects(), value);
                    made = true;
                }
                if (block().compareAndSetLong(VALUE_AT, now, cell)) {
                    return true;
                }
            }
        });
    }

    @Override
    protected void trace(Tracer tracer) {
        Cell.trace(block().getLong(VALUE_AT), tracer);
    }

    private static boolean isSame(Object now, Object expected) {
        return now instanceof PersistentObject ? now == expected
                : Objects.deepEquals(now, expected);
    }
}
