package io.entresol.collections;

import java.util.AbstractList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.ListIterator;
import java.util.function.UnaryOperator;

/** The common part of lists in a heap. Equal lists have equal elements. */
public abstract class PersistentList<E> extends PersistentCollection<E> implements List<E> {
    PersistentList(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    @Override
    abstract AbstractList<E> elements();

    @Override
    public E get(int index) {
        return elements().get(index);
    }

    @Override
    public E set(int index, E element) {
        return inTransaction(() -> elements().set(index, element));
    }

    @Override
    public void add(int index, E element) {
        objects().run(() -> elements().add(index, element));
    }

    @Override
    public boolean addAll(int index, Collection<? extends E> others) {
        return inTransaction(() -> elements().addAll(index, others));
    }

    @Override
    public E remove(int index) {
        return inTransaction(() -> elements().remove(index));
    }

    @Override
    public void replaceAll(UnaryOperator<E> operator) {
        objects().run(() -> elements().replaceAll(operator));
    }

    @Override
    public void sort(Comparator<? super E> order) {
        objects().run(() -> elements().sort(order));
    }

    @Override
    public int indexOf(Object element) {
        return elements().indexOf(element);
    }

    @Override
    public int lastIndexOf(Object element) {
        return elements().lastIndexOf(element);
    }

    @Override
    public ListIterator<E> listIterator() {
        return elements().listIterator();
    }

    @Override
    public ListIterator<E> listIterator(int index) {
        return elements().listIterator(index);
    }

    @Override
    public List<E> subList(int from, int to) {
        return elements().subList(from, to);
    }

    @Override
    public boolean equals(Object other) {
        return other == this || elements().equals(other);
    }

    @Override
    public int hashCode() {
        return elements().hashCode();
    }
}
