package io.entresol.collections.internal.views;

import io.entresol.collections.Tracer;
import io.entresol.collections.internal.blocks.Cells;
import io.entresol.collections.internal.blocks.Chunks;
import java.util.AbstractList;
import java.util.BitSet;
import java.util.Collection;
import java.util.Comparator;
import java.util.ConcurrentModificationException;
import java.util.List;
import java.util.Objects;
import java.util.RandomAccess;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

/** The elements of an array list: a row of cells. */
public final class ArrayElements<E> extends AbstractList<E>
        implements RandomAccess, Contents {
    private final Owner owner;
    private final Chunks row;
    private final Cells<E> cells;

    public ArrayElements(Owner owner, Chunks row, Cells<E> cells) {
        this.owner = owner;
        this.row = row;
        this.cells = cells;
    }

    @Override
    public int size() {
        owner.requireMade();
        return (int) row.size();
    }

    @Override
    public E get(int index) {
        return owner.looked(() -> {
            Objects.checkIndex(index, size());
            return read(index);
        });
    }

    @Override
    public E set(int index, E element) {
        return changed(() -> {
            Objects.checkIndex(index, size());
            E before = read(index);
            long word = cells.keep(element);
            cells.release(row.get(index));
            row.set(index, word);
            return before;
        });
    }

    @Override
    public boolean add(E element) {
        // Where the end is, is known once the row is held.
        changed(() -> insert(size(), element));
        return true;
    }

    @Override
    public void add(int index, E element) {
        changed(() -> {
            Objects.checkIndex(index, size() + 1);
            return insert(index, element);
        });
    }

    @Override
    public boolean addAll(Collection<? extends E> others) {
        return changed(() -> addAll(size(), others));
    }

    @Override
    @SuppressWarnings("unchecked")
    public boolean addAll(int index, Collection<? extends E> others) {
        // What an array of the collection holds are its elements.
        E[] added = (E[]) others.toArray();
        return changed(() -> {
            Objects.checkIndex(index, size() + 1);
            requireRoom(added.length);
            long[] words = new long[added.length];
            for (int each = 0; each < added.length; each++) {
                words[each] = cells.keep(added[each]);
            }
            row.insert(index, words);
            modCount += added.length > 0 ? 1 : 0;
            return added.length > 0;
        });
    }

    @Override
    public E remove(int index) {
        return changed(() -> {
            Objects.checkIndex(index, size());
            E before = read(index);
            removeRange(index, index + 1);
            return before;
        });
    }

    // These are public, since newer versions of Java have lists with methods of these names.

    public E getFirst() {
        return owner.looked(() -> get(Backwards.required(this, 0)));
    }

    public E getLast() {
        return owner.looked(() -> get(Backwards.required(this, size() - 1)));
    }

    public E removeFirst() {
        return changed(() -> remove(Backwards.required(this, 0)));
    }

    public E removeLast() {
        return changed(() -> remove(Backwards.required(this, size() - 1)));
    }

    /** Backwards, with what changes many elements as one transaction. */
    public List<E> reversed(List<E> forwards) {
        return ListPart.withQuickAccess(new Backwards<>(this, forwards), this::changed);
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
        return ListPart.withQuickAccess(super.subList(from, to), this::changed);
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
        Objects.requireNonNull(condition, "condition");
        return changed(() -> {
            BitSet taken = chosen(condition);
            if (taken.isEmpty()) {
                return false;
            }
            int size = size();
            int kept = taken.nextSetBit(0);
            for (int index = kept; index < size; index++) {
                long word = row.get(index);
                if (taken.get(index)) {
                    cells.release(word);
                } else {
                    row.set(kept, word);
                    kept++;
                }
            }
            modCount++;
            row.close(kept, size - (long) kept);
            return true;
        });
    }

    @Override
    public void clear() {
        changed(() -> {
            removeRange(0, size());
            return null;
        });
    }

    @Override
    protected void removeRange(int from, int to) {
        changed(() -> {
            for (int index = from; index < to; index++) {
                cells.release(row.get(index));
            }
            if (from < to) {
                modCount++;
                row.close(from, to - (long) from);
            }
            return null;
        });
    }

    @Override
    public void trace(Tracer tracer) {
        row.trace(tracer, word -> cells.trace(word, tracer));
    }

    /**
     * Runs {@code body} while no other thread changes the list. Java counts the undoing of changes
     * as one more, so that parts and iterators which took part in them are refused.
     */
    private <T> T changed(Supplier<T> body) {
        owner.requireMade();
        return owner.objects().run((Supplier<T>) () -> {
            row.hold();
            int before = modCount;
            T result = body.get();
            if (modCount != before) {
                owner.objects().heap().whenSettled(() -> { }, () -> modCount++);
            }
            return result;
        });
    }

    /** Which elements a condition holds for, as long as it changes none. */
    private BitSet chosen(Predicate<? super E> condition) {
        BitSet chosen = new BitSet();
        int expected = modCount;
        for (int index = 0; index < size(); index++) {
            if (condition.test(read(index))) {
                chosen.set(index);
            }
            if (modCount != expected) {
                throw new ConcurrentModificationException("the condition changed the list");
            }
        }
        return chosen;
    }

    private Void insert(int index, E element) {
        requireRoom(1);
        long word = cells.keep(element);
        modCount++;
        row.insert(index, word);
        return null;
    }

    private E read(long index) {
        long word = row.get(index);
        if (word == 0) {
            throw new ConcurrentModificationException("the list was shortened meanwhile");
        }
        return cells.read(word);
    }

    private void requireRoom(int count) {
        if (count > Integer.MAX_VALUE - size()) {
            throw new IllegalStateException("a list has at most 2^31 - 1 elements");
        }
    }
}
