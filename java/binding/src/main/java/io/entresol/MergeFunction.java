package io.entresol;

/**
 * How parts of a row become its value. It is called by readers, in their own threads, and by merges,
 * in the one thread {@code entresol merges} of the store, for all rows of a leaf one after another.
 * So several threads may be in it at once. It must be a pure function of the row: a merge that is
 * repeated after a crash has to come to the same, and how many parts come together is not known
 * before, so folding some parts and then others must be as folding all at once. The time may count,
 * for rows that end.
 *
 * <p>It must not use the store's tables. What it throws in a merge holds the leaf back: the changes
 * stay in memory and in the journal, the next sweep of merges asks again, and
 * {@link Store#heldBack} and refused writers tell why. It has 30 seconds for a leaf.
 */
@FunctionalInterface
public interface MergeFunction {
    /** Returned where the value is the row's base as it is. */
    byte[] KEEP = new byte[0];

    /**
     * The value of a row; {@code null}: the row is no more. A row has a base or parts. The row is
     * valid until the return.
     */
    byte[] fold(TableRow row);

    /**
     * Whether rows without parts are given to {@link #fold} as well, when they are read and when
     * their leaf is written anew. It is how rows end as time passes.
     */
    default boolean foldsAllRows() {
        return false;
    }
}
