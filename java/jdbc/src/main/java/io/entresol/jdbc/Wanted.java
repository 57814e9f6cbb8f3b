package io.entresol.jdbc;

import java.util.Collection;

/**
 * Which rows of a table a join asks for: those that have one of some cells, or all. For the code
 * that is made for a statement, not for other uses.
 */
public final class Wanted {
    private final Collection<Object> cells;

    private Wanted(Collection<Object> cells) {
        this.cells = cells;
    }

    static Wanted all() {
        return new Wanted(null);
    }

    /** None of them is null. */
    static Wanted of(Collection<Object> cells) {
        return new Wanted(cells);
    }

    boolean areAll() {
        return cells == null;
    }

    Collection<Object> cells() {
        return cells;
    }
}
