package io.entresol.collections.internal.views;

import java.util.AbstractSet;
import java.util.Collection;
import java.util.Objects;
import java.util.Spliterator;
import java.util.function.Predicate;
import java.util.function.Supplier;

/** A set that shows a map; a change of many elements is one transaction. */
abstract class SetView<E> extends AbstractSet<E> {
    private final EntryMap<?, ?> shown;

    SetView(EntryMap<?, ?> shown) {
        this.shown = shown;
    }

    @Override
    public Spliterator<E> spliterator() {
        return new ViewSpliterator<>(iterator(), shown.order() | Spliterator.DISTINCT);
    }

    @Override
    public int size() {
        return shown.size();
    }

    @Override
    public boolean isEmpty() {
        return shown.isEmpty();
    }

    @Override
    public void clear() {
        shown.clear();
    }

    @Override
    public boolean removeIf(Predicate<? super E> condition) {
        return shown.alone(() -> super.removeIf(condition));
    }

    @Override
    public boolean addAll(Collection<? extends E> others) {
        return shown.objects.run((Supplier<Boolean>) () -> super.addAll(others));
    }

    @Override
    public boolean removeAll(Collection<?> others) {
        Objects.requireNonNull(others, "others");
        return shown.alone(() -> {
            if (size() <= others.size()) {
                return super.removeIf(Sought.among(others));
            }
            boolean removed = false;
            for (Object each : others) {
                removed |= remove(each);
            }
            return removed;
        });
    }

    @Override
    public boolean retainAll(Collection<?> others) {
        return shown.alone(() -> super.removeIf(Sought.among(others).negate()));
    }

    @Override
    public int hashCode() {
        int hash = 0;
        for (E element : this) {
            hash += Sought.hash(element);
        }
        return hash;
    }
}
