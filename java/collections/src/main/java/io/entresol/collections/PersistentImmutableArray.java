package io.entresol.collections;

import java.util.Arrays;

/**
 * An array like {@link PersistentArray} whose elements never change; arrays with equal elements are
 * equal.
 */
public final class PersistentImmutableArray<T> extends PersistentElements {
    @SuppressWarnings("rawtypes")
    static final ObjectType<PersistentImmutableArray> TYPE = ObjectType.of(
            PersistentImmutableArray.class, "elements any", PersistentImmutableArray::new);

    private PersistentImmutableArray(ObjectHeap objects, long handle) {
        super(objects, handle, Cell.BYTES);
    }

    /** Makes one with those elements. */
    @SafeVarargs
    @SuppressWarnings("unchecked")
    public static <T> PersistentImmutableArray<T> of(ObjectHeap objects, T... elements) {
        return (PersistentImmutableArray<T>) Elements.create(TYPE, objects, elements);
    }

    /** The element at {@code index}. */
    public T get(int index) {
        return Elements.get(this, at(index));
    }

    /** A copy of all elements. */
    public Object[] toArray() {
        return Elements.copy(this);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof PersistentImmutableArray
                && Arrays.deepEquals(
                        toArray(), ((PersistentImmutableArray<?>) other).toArray());
    }

    @Override
    public int hashCode() {
        return Arrays.deepHashCode(toArray());
    }

    @Override
    public String toString() {
        return Elements.shown(this);
    }

    @Override
    Class<?> elementType() {
        return Object.class;
    }

    @Override
    boolean isMutable() {
        return false;
    }

    @Override
    protected void trace(Tracer tracer) {
        Elements.trace(block(), tracer);
    }
}
