package io.entresol.collections.internal.views;

import io.entresol.collections.ListDeque;
import io.entresol.collections.Tracer;
import io.entresol.collections.internal.blocks.Cells;
import io.entresol.collections.internal.blocks.Links;
import java.util.AbstractSequentialList;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.ConcurrentModificationException;
import java.util.Iterator;
import java.util.List;
import java.util.ListIterator;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

/** The elements of a linked list or queue: nodes that lead to cells. */
public final class LinkedElements<E> extends AbstractSequentialList<E>
        implements Contents {
    private final Owner owner;
    private final Links links;
    private final Cells<E> cells;

    public LinkedElements(Owner owner, Links links, Cells<E> cells) {
        this.owner = owner;
        this.links = links;
        this.cells = cells;
    }

    @Override
    public int size() {
        owner.requireMade();
        return (int) Math.min(links.size(), Integer.MAX_VALUE);
    }

    @Override
    public ListIterator<E> listIterator(int index) {
        return owner.looked(() -> {
            Objects.checkIndex(index, size() + 1);
            return new Nodes(links.node(index), index);
        });
    }

    /** Backwards, with what changes many elements as one transaction. */
    public ListDeque<E> reversed(ListDeque<E> forwards) {
        return new ReversedDeque<>(forwards, new Backwards<>(this, forwards), this::changed);
    }

    /** From the last element to the first. */
    public Iterator<E> descendingIterator() {
        ListIterator<E> elements = listIterator(size());
        return new Iterator<>() {
            @Override
            public boolean hasNext() {
                return elements.hasPrevious();
            }

            @Override
            public E next() {
                return elements.previous();
            }

            @Override
            public void remove() {
                elements.remove();
            }
        };
    }

    @Override
    public boolean add(E element) {
        addLast(element);
        return true;
    }

    // These are public, since newer versions of Java have lists with methods of these names.

    public void addFirst(E element) {
        changed(() -> insert(links.first(), element));
    }

    public void addLast(E element) {
        changed(() -> insert(0, element));
    }

    @Override
    public void add(int index, E element) {
        changed(() -> {
            super.add(index, element);
            return null;
        });
    }

    @Override
    public E set(int index, E element) {
        return changed(() -> super.set(index, element));
    }

    @Override
    public E remove(int index) {
        return changed(() -> super.remove(index));
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
        return changed(() -> super.remove(Sought.of(element)));
    }

    /** Removes the last element that equals this one; whether there was one. */
    public boolean removeLastOccurrence(Object element) {
        return changed(() -> {
            int index = lastIndexOf(element);
            if (index >= 0) {
                remove(index);
            }
            return index >= 0;
        });
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
        return changed(() -> super.removeIf(condition));
    }

    @Override
    public void replaceAll(UnaryOperator<E> operator) {
        changed(() -> {
            super.replaceAll(operator);
            return null;
        });
    }

    @Override
    public void sort(Comparator<? super E> order) {
        changed(() -> {
            super.sort(order);
            return null;
        });
    }

    @Override
    public List<E> subList(int from, int to) {
        return new ListPart<>(super.subList(from, to), this::changed);
    }

    @Override
    public boolean addAll(Collection<? extends E> others) {
        return changed(() -> addAll(size(), others));
    }

    @Override
    public boolean addAll(int index, Collection<? extends E> others) {
        // A copy, as they may be these very elements.
        List<? extends E> added = new ArrayList<>(others);
        return changed(() -> super.addAll(index, added));
    }

    public E getFirst() {
        return owner.looked(() -> read(required(links.first())));
    }

    public E getLast() {
        return owner.looked(() -> read(required(links.last())));
    }

    public E removeFirst() {
        return changed(() -> remove(required(links.first())));
    }

    public E removeLast() {
        return changed(() -> remove(required(links.last())));
    }

    /** The first element; null if there is none. */
    public E peekFirst() {
        return owner.looked(() -> read(links.first()));
    }

    /** The last element; null if there is none. */
    public E peekLast() {
        return owner.looked(() -> read(links.last()));
    }

    /** Removes the first element; null if there is none. */
    public E pollFirst() {
        return changed(() -> remove(links.first()));
    }

    /** Removes the last element; null if there is none. */
    public E pollLast() {
        return changed(() -> remove(links.last()));
    }

    @Override
    public void clear() {
        changed(() -> {
            for (long node = links.first(); node != 0; node = links.first()) {
                remove(node);
            }
            return null;
        });
    }

    @Override
    public void trace(Tracer tracer) {
        links.trace(tracer);
        for (long node = links.first(); node != 0; node = links.next(node)) {
            cells.trace(links.word(node), tracer);
        }
    }

    /**
     * Runs {@code body} while no other thread changes the list. Java counts the undoing of changes
     * as one more, so that parts and iterators which took part in them are refused.
     */
    private <T> T changed(Supplier<T> body) {
        owner.requireMade();
        return owner.objects().run((Supplier<T>) () -> {
            links.hold();
            int before = modCount;
            T result = body.get();
            if (modCount != before) {
                owner.objects().heap().whenSettled(() -> { }, () -> modCount++);
            }
            return result;
        });
    }

    private long insert(long next, E element) {
        if (links.size() == Integer.MAX_VALUE) {
            throw new IllegalStateException("it has at most 2^31 - 1 elements");
        }
        long node = links.insert(next, cells.keep(element));
        modCount++;
        return node;
    }

    private E remove(long node) {
        if (node == 0) {
            return null;
        }
        long word = links.remove(node);
        modCount++;
        E element = cells.read(word);
        cells.release(word);
        return element;
    }

    private static long required(long node) {
        if (node == 0) {
            throw new NoSuchElementException("there is no element");
        }
        return node;
    }

    private E read(long node) {
        return node == 0 ? null : cells.read(links.word(node));
    }

    /** Walks from node to node, and refuses to once others added or removed some. */
    private final class Nodes implements ListIterator<E> {
        /** The node that comes next, 0 at the end. */
        private long next;
        private long index;
        /** The node that was returned last, 0 if none is to be set or removed. */
        private long last;
        private int expected;
        private long expectedInHeap;

        Nodes(long next, long index) {
            this.next = next;
            this.index = index;
            expect();
        }

        @Override
        public boolean hasNext() {
            return index < size();
        }

        @Override
        public E next() {
            return looked(() -> {
                if (next == 0) {
                    throw new NoSuchElementException("no element comes next");
                }
                E element = read(next);
                last = next;
                next = links.next(last);
                index++;
                return element;
            });
        }

        @Override
        public boolean hasPrevious() {
            return index > 0;
        }

        @Override
        public E previous() {
            return looked(() -> {
                long previous = next == 0 ? links.last() : links.previous(next);
                if (previous == 0) {
                    throw new NoSuchElementException("no element comes before");
                }
                E element = read(previous);
                last = previous;
                next = previous;
                index--;
                return element;
            });
        }

        @Override
        public int nextIndex() {
            return (int) index;
        }

        @Override
        public int previousIndex() {
            return (int) index - 1;
        }

        @Override
        public void remove() {
            requireLast();
            changed(() -> {
                requireUnchanged();
                long after = links.next(last);
                LinkedElements.this.remove(last);
                if (next == last) {
                    next = after;
                } else {
                    index--;
                }
                last = 0;
                expect();
                return null;
            });
        }

        @Override
        public void set(E element) {
            requireLast();
            changed(() -> {
                requireUnchanged();
                long word = cells.keep(element);
                cells.release(links.word(last));
                links.setWord(last, word);
                return null;
            });
        }

        @Override
        public void add(E element) {
            changed(() -> {
                requireUnchanged();
                insert(next, element);
                index++;
                last = 0;
                expect();
                return null;
            });
        }

        private <T> T looked(Supplier<T> body) {
            return owner.looked(() -> {
                requireUnchanged();
                return body.get();
            });
        }

        private void expect() {
            expected = modCount;
            expectedInHeap = links.changes();
        }

        /** An abort takes changes in the heap back, and those counted in Java stay. */
        private void requireUnchanged() {
            if (expected != modCount || expectedInHeap != links.changes()) {
                throw new ConcurrentModificationException("elements were added or removed");
            }
        }

        private void requireLast() {
            if (last == 0) {
                throw new IllegalStateException("no element was returned, or it was removed");
            }
        }
    }
}
