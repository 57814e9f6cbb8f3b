package io.entresol.collections.internal.views;

import java.util.Comparator;
import java.util.Iterator;
import java.util.Objects;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.function.Consumer;

/**
 * The spliterator behind streams of a map's views. The number of elements is not known: the map may
 * change meanwhile, and its count includes elements that an iterator skips.
 */
final class ViewSpliterator<T> extends Spliterators.AbstractSpliterator<T> {
    private final Iterator<T> elements;
    private final Comparator<? super T> order;

    /** Elements in no order of their own. */
    ViewSpliterator(Iterator<T> elements, int characteristics) {
        super(Long.MAX_VALUE, characteristics | CONCURRENT);
        this.elements = elements;
        this.order = null;
    }

    /** The elements of a sorted set. */
    ViewSpliterator(Iterator<T> elements, Comparator<? super T> order) {
        super(Long.MAX_VALUE, CONCURRENT | DISTINCT | ORDERED | SORTED);
        this.elements = elements;
        this.order = order;
    }

    @Override
    public boolean tryAdvance(Consumer<? super T> action) {
        Objects.requireNonNull(action, "action");
        boolean more = elements.hasNext();
        if (more) {
            action.accept(elements.next());
        }
        return more;
    }

    @Override
    public Comparator<? super T> getComparator() {
        if (order == null) {
            throw new IllegalStateException("the elements are not sorted");
        }
        return order;
    }
}
