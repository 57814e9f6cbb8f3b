package io.entresol.collections.internal.views;

import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.ListIterator;
import java.util.NoSuchElementException;
import java.util.function.Predicate;

/**
 * A list from its last element to its first; changes go to the list. The list itself notices
 * changes by others. The user decides how far a transaction reaches.
 */
final class Backwards<E> extends AbstractList<E> {
    private final List<E> base;
    private final List<E> forwards;

    /**
     * A list backwards.
     *
     * @param base the list
     * @param forwards the same as people have it
     */
    Backwards(List<E> base, List<E> forwards) {
        this.base = base;
        this.forwards = forwards;
    }

    /** The index, if there is any element; from Java 21 on lists have methods that say so. */
    static int required(List<?> list, int index) {
        if (list.isEmpty()) {
            throw new NoSuchElementException("there is no element");
        }
        return index;
    }

    List<E> forwards() {
        return forwards;
    }

    @Override
    public int size() {
        return base.size();
    }

    @Override
    public E get(int index) {
        return base.get(base.size() - 1 - index);
    }

    @Override
    public E set(int index, E element) {
        return base.set(base.size() - 1 - index, element);
    }

    @Override
    public void add(int index, E element) {
        base.add(base.size() - index, element);
    }

    @Override
    public boolean addAll(Collection<? extends E> others) {
        return addAll(size(), others);
    }

    @Override
    public boolean addAll(int index, Collection<? extends E> others) {
        List<E> added = new ArrayList<>(others);
        Collections.reverse(added);
        return base.addAll(base.size() - index, added);
    }

    @Override
    public E remove(int index) {
        return base.remove(base.size() - 1 - index);
    }

    @Override
    public boolean removeIf(Predicate<? super E> condition) {
        return base.removeIf(condition);
    }

    @Override
    public void clear() {
        base.clear();
    }

    @Override
    public List<E> subList(int from, int to) {
        int size = base.size();
        List<E> part = base.subList(size - to, size - from);
        return new Backwards<>(part, part);
    }

    @Override
    public Iterator<E> iterator() {
        return listIterator();
    }

    @Override
    public ListIterator<E> listIterator(int index) {
        int size = base.size();
        return new Each(base.listIterator(size - index), size - index, index);
    }

    /** Walks the other way, at indices of its own: those of the list move as it is changed here. */
    private final class Each implements ListIterator<E> {
        private final ListIterator<E> each;
        private int left;
        private int passed;
        /** Whether the element that was returned last was one that comes next here. */
        private boolean onward;

        Each(ListIterator<E> each, int left, int passed) {
            this.each = each;
            this.left = left;
            this.passed = passed;
        }

        @Override
        public boolean hasNext() {
            return left > 0;
        }

        @Override
        public E next() {
            E element = each.previous();
            left--;
            passed++;
            onward = true;
            return element;
        }

        @Override
        public boolean hasPrevious() {
            return passed > 0;
        }

        @Override
        public E previous() {
            E element = each.next();
            left++;
            passed--;
            onward = false;
            return element;
        }

        @Override
        public int nextIndex() {
            return passed;
        }

        @Override
        public int previousIndex() {
            return passed - 1;
        }

        @Override
        public void remove() {
            each.remove();
            if (onward) {
                passed--;
            } else {
                left--;
            }
        }

        @Override
        public void set(E element) {
            each.set(element);
        }

        @Override
        public void add(E element) {
            each.add(element);
            // It stands behind what was added; here it is to stand before.
            each.previous();
            passed++;
        }
    }
}
