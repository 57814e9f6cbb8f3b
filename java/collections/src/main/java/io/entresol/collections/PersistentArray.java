package io.entresol.collections;

/**
 * A fixed number of elements of any kind: persistent objects, values such as strings and boxes of
 * Java, or null.
 */
public final class PersistentArray<T> extends PersistentElements {
    @SuppressWarnings("rawtypes")
    static final ObjectType<PersistentArray> TYPE =
            ObjectType.of(PersistentArray.class, "elements any", PersistentArray::new);

    private PersistentArray(ObjectHeap objects, long handle) {
        super(objects, handle, Cell.BYTES);
    }

    /** Makes one with so many elements, all of them null. */
    @SuppressWarnings("unchecked")
    public static <T> PersistentArray<T> create(ObjectHeap objects, int length) {
        return TYPE.create(objects, bytes(length, Cell.BYTES), range -> { });
    }

    /** Makes one with those elements. */
    @SafeVarargs
    @SuppressWarnings("unchecked")
    public static <T> PersistentArray<T> of(ObjectHeap objects, T... elements) {
        return (PersistentArray<T>) Elements.create(TYPE, objects, elements);
    }

    /** The element at {@code index}. */
    public T get(int index) {
        return Elements.get(this, at(index));
    }

    /** Changes the element at {@code index}. */
    public void set(int index, T element) {
        Elements.set(this, at(index), element);
    }

    /** A copy of all elements. */
    public Object[] toArray() {
        return Elements.copy(this);
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
        return true;
    }

    @Override
    protected void trace(Tracer tracer) {
        Elements.trace(block(), tracer);
    }
}
