package io.entresol.collections;

import java.util.Arrays;
import java.util.stream.Collectors;

/**
 * A few elements, each of its own type: persistent objects, values such as strings and boxes of
 * Java, or null. Tuples of the same class are equal if their elements are.
 */
public abstract class PersistentTuple extends PersistentObject {
    PersistentTuple(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** Number of elements. */
    public final int size() {
        return Elements.count(block());
    }

    /** A copy of all elements. */
    public final Object[] toArray() {
        return Elements.copy(this);
    }

    @Override
    public final boolean equals(Object other) {
        return this == other || other != null && other.getClass() == getClass()
                && Arrays.deepEquals(toArray(), ((PersistentTuple) other).toArray());
    }

    @Override
    public final int hashCode() {
        return Arrays.deepHashCode(toArray());
    }

    @Override
    public final String toString() {
        return Arrays.stream(toArray()).map(String::valueOf)
                .collect(Collectors.joining(", ", "(", ")"));
    }

    @Override
    protected final void trace(Tracer tracer) {
        Elements.trace(block(), tracer);
    }

    static <T extends PersistentTuple> T create(
            ObjectType<T> type, ObjectHeap objects, Object... elements) {
        return Elements.create(type, objects, elements);
    }

    final <T> T element(int number) {
        return Elements.get(this, Elements.offset(number - 1));
    }

    final void element(int number, Object element) {
        Elements.set(this, Elements.offset(number - 1), element);
    }
}
