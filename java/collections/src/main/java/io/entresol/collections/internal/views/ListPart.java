package io.entresol.collections.internal.views;

import java.util.AbstractList;
import java.util.Collection;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.ListIterator;
import java.util.RandomAccess;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

/**
 * A part of a list in a heap, as in Java's own lists. A change of many elements is one transaction,
 * and so is a search with the removal of the element found.
 */
class ListPart<E> extends AbstractList<E> {
    private final List<E> part;
    final Change change;

    ListPart(List<E> part, Change change) {
        this.part = part;
        this.change = change;
    }

    /** How the list that this is a part of is changed. */
    interface Change {
        /** Runs {@code body} in a transaction, while no other thread changes the list. */
        <T> T run(Supplier<T> body);
    }

    /** A part of a list with quick access by index. */
    static <E> List<E> withQuickAccess(List<E> part, Change change) {
        return new Quick<>(part, change);
    }

    // The next three are public, since newer versions of Java have lists with these methods.

    /** The same elements from the last to the first. */
    public List<E> reversed() {
        return part instanceof Backwards<E> backwards ? backwards.forwards()
                : within(new Backwards<>(part, this));
    }

    public E removeFirst() {
        return change.run(() -> part.remove(Backwards.required(part, 0)));
    }

    public E removeLast() {
        return change.run(() -> part.remove(Backwards.required(part, part.size() - 1)));
    }

    @Override
    public int size() {
        return part.size();
    }

    @Override
    public E get(int index) {
        return part.get(index);
    }

    @Override
    public E set(int index, E element) {
        return change.run(() -> part.set(index, element));
    }

    @Override
    public boolean add(E element) {
        return change.run(() -> part.add(element));
    }

    @Override
    public void add(int index, E element) {
        runs(() -> part.add(index, element));
    }

    @Override
    public boolean addAll(Collection<? extends E> others) {
        return change.run(() -> part.addAll(others));
    }

    @Override
    public boolean addAll(int index, Collection<? extends E> others) {
        return change.run(() -> part.addAll(index, others));
    }

    @Override
    public E remove(int index) {
        return change.run(() -> part.remove(index));
    }

    @Override
    public boolean contains(Object element) {
        return super.contains(Sought.of(element));
    }

    @Override
    public int indexOf(Object element) {
        return super.indexOf(Sought.of(element));
    }

    @Override
    public int lastIndexOf(Object element) {
        return super.lastIndexOf(Sought.of(element));
    }

    @Override
    public boolean equals(Object other) {
        return other == this || Sought.areEqual(this, other);
    }

    @Override
    public int hashCode() {
        return Sought.hash(this);
    }

    @Override
    public boolean remove(Object element) {
        return change.run(() -> part.remove(Sought.of(element)));
    }

    @Override
    public boolean removeAll(Collection<?> others) {
        return removeIf(Sought.among(others));
    }

    @Override
    public boolean retainAll(Collection<?> others) {
        return removeIf(Sought.among(others).negate());
    }

    @Override
    public boolean removeIf(Predicate<? super E> condition) {
        return change.run(() -> part.removeIf(condition));
    }

    @Override
    public void replaceAll(UnaryOperator<E> operator) {
        runs(() -> part.replaceAll(operator));
    }

    @Override
    public void sort(Comparator<? super E> order) {
        runs(() -> part.sort(order));
    }

    @Override
    public void clear() {
        runs(part::clear);
    }

    @Override
    public Iterator<E> iterator() {
        return part.iterator();
    }

    @Override
    public ListIterator<E> listIterator(int index) {
        return part.listIterator(index);
    }

    @Override
    public List<E> subList(int from, int to) {
        return within(part.subList(from, to));
    }

    /** The same of a part of this one. */
    ListPart<E> within(List<E> smaller) {
        return new ListPart<>(smaller, change);
    }

    private void runs(Runnable body) {
        change.run(() -> {
            body.run();
            return null;
        });
    }

    private static final class Quick<E> extends ListPart<E> implements RandomAccess {
        Quick(List<E> part, Change change) {
            super(part, change);
        }

        @Override
        Quick<E> within(List<E> smaller) {
            return new Quick<>(smaller, change);
        }
    }
}
