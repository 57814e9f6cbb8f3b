package io.entresol.jdbc.internal.run;

import java.util.Collection;

/**
 * The rows of a table that a join needs: rows with one of some cells, or all. For the code
 * generated for a statement, not for other uses.
 */
public final class Wanted {
    private final Collection<Object> cells;

    private Wanted(Collection<Object> cells) {
        this.cells = cells;
    }

    public static Wanted all() {
        return new Wanted(null);
    }

    /** None of them is null. */
    public static Wanted of(Collection<Object> cells) {
        return new Wanted(cells);
    }

    public boolean areAll() {
        return cells == null;
    }

    public Collection<Object> cells() {
        return cells;
    }
}
