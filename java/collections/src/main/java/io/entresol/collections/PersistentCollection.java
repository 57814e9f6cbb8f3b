package io.entresol.collections;

import java.util.AbstractCollection;
import java.util.Collection;
import java.util.Iterator;
import java.util.Spliterator;
import java.util.function.Predicate;

/** The common part of collections in a heap. Each change of many elements is one transaction. */
public abstract class PersistentCollection<E> extends CodedObject implements Collection<E> {
    PersistentCollection(ObjectHeap objects, long handle) {
        super(objects, handle, 1);
    }

    /** The elements, with all methods of their kind; refused if the object was undone. */
    abstract AbstractCollection<E> elements();

    /** Encodes the elements. */
    final Codec<E> codec() {
        return codec(0);
    }

    @Override
    public int size() {
        return elements().size();
    }

    @Override
    public boolean isEmpty() {
        return elements().isEmpty();
    }

    @Override
    public boolean contains(Object element) {
        return elements().contains(element);
    }

    @Override
    public Iterator<E> iterator() {
        return elements().iterator();
    }

    @Override
    public Spliterator<E> spliterator() {
        return elements().spliterator();
    }

    @Override
    public Object[] toArray() {
        return elements().toArray();
    }

    @Override
    public <T> T[] toArray(T[] array) {
        return elements().toArray(array);
    }

    @Override
    public boolean add(E element) {
        return elements().add(element);
    }

    @Override
    public boolean remove(Object element) {
        return inTransaction(() -> elements().remove(element));
    }

    @Override
    public boolean containsAll(Collection<?> others) {
        return elements().containsAll(others);
    }

    @Override
    public boolean addAll(Collection<? extends E> others) {
        return inTransaction(() -> elements().addAll(others));
    }

    @Override
    public boolean removeAll(Collection<?> others) {
        return inTransaction(() -> elements().removeAll(others));
    }

    @Override
    public boolean retainAll(Collection<?> others) {
        return inTransaction(() -> elements().retainAll(others));
    }

    @Override
    public boolean removeIf(Predicate<? super E> condition) {
        return inTransaction(() -> elements().removeIf(condition));
    }

    @Override
    public void clear() {
        objects().run(() -> elements().clear());
    }

    @Override
    public String toString() {
        return elements().toString();
    }
}
