package io.entresol.collections.internal.views;

import java.util.AbstractCollection;
import java.util.Collection;
import java.util.Iterator;
import java.util.Map;
import java.util.Spliterator;
import java.util.function.Predicate;

/** The values of a map, as a view of it; a change of many values is one transaction. */
final class ValueView<V> extends AbstractCollection<V> {
    private final EntryMap<?, V> map;

    ValueView(EntryMap<?, V> map) {
        this.map = map;
    }

    @Override
    public Iterator<V> iterator() {
        return EntryMap.parts(map, Map.Entry::getValue);
    }

    @Override
    public Spliterator<V> spliterator() {
        return new ViewSpliterator<>(iterator(), map.order());
    }

    @Override
    public int size() {
        return map.size();
    }

    @Override
    public boolean isEmpty() {
        return map.isEmpty();
    }

    @Override
    public boolean contains(Object value) {
        return map.containsValue(value);
    }

    @Override
    public void clear() {
        map.clear();
    }

    @Override
    public boolean removeIf(Predicate<? super V> condition) {
        return map.alone(() -> super.removeIf(condition));
    }

    @Override
    public boolean remove(Object value) {
        return map.alone(() -> {
            for (Iterator<V> values = iterator(); values.hasNext(); ) {
                if (EntryMap.isSame(value, values.next())) {
                    values.remove();
                    return true;
                }
            }
            return false;
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
}
