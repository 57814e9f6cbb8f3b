package io.entresol.collections;

/** One value that never changes. Boxes of equal values are equal and ordered as their values. */
public abstract class PersistentBox<T extends Comparable<? super T>> extends PersistentObject
        implements Comparable<PersistentBox<T>> {
    PersistentBox(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    /** The value as Java has it. */
    public abstract T value();

    @Override
    public final int compareTo(PersistentBox<T> other) {
        return value().compareTo(other.value());
    }

    /** As {@link #compareTo}, with a value of Java. */
    public final int compareWith(T other) {
        return value().compareTo(other);
    }

    /** Whether the value equals one of Java. */
    public final boolean equatesWith(T other) {
        return value().equals(other);
    }

    @Override
    public final boolean equals(Object other) {
        return this == other || other != null && other.getClass() == getClass()
                && value().equals(((PersistentBox<?>) other).value());
    }

    @Override
    public final int hashCode() {
        return value().hashCode();
    }

    @Override
    public final String toString() {
        return value().toString();
    }

    @Override
    protected final void trace(Tracer tracer) {
    }
}
