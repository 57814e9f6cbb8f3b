package io.entresol.collections.internal.views;

import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.function.Predicate;

/**
 * The object of a search in a collection. Byte arrays compare by contents, because each read of an
 * element makes a new array, and no two arrays are equal. Java's collections call {@code equals} of
 * the sought object, not of their elements.
 */
final class Sought {
    private final byte[] bytes;

    private Sought(byte[] bytes) {
        this.bytes = bytes;
    }

    /** What to ask for an element. */
    static Object of(Object element) {
        return element instanceof byte[] bytes ? new Sought(bytes) : element;
    }

    /** A hash of an element, the same for equal ones. */
    static int hash(Object element) {
        return Objects.hashCode(of(element));
    }

    /** Whether an element is one of a collection's. */
    static Predicate<Object> among(Collection<?> others) {
        Objects.requireNonNull(others, "others");
        return element -> element instanceof byte[]
                ? others.stream().anyMatch(of(element)::equals) : others.contains(element);
    }

    /** Whether there is a list with the same elements. */
    static boolean areEqual(List<?> list, Object other) {
        if (!(other instanceof List<?> others)) {
            return false;
        }
        Iterator<?> theirs = others.iterator();
        for (Object element : list) {
            if (!theirs.hasNext() || !Objects.equals(of(element), theirs.next())) {
                return false;
            }
        }
        return !theirs.hasNext();
    }

    /** That of equal lists. */
    static int hash(List<?> list) {
        int hash = 1;
        for (Object element : list) {
            hash = 31 * hash + hash(element);
        }
        return hash;
    }

    @Override
    public boolean equals(Object element) {
        return element instanceof byte[] others && Arrays.equals(bytes, others);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }
}
