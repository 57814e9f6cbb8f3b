package io.entresol.collections.internal.blocks;

import io.entresol.collections.Tracer;

/**
 * The values that the words of entries stand for. Changes are part of the thread's current
 * transaction.
 */
public interface Values<V> {
    /** A word for {@code value}, not 0. */
    long keep(V value);

    /** The word of a key that is an element of a set. */
    default long member() {
        throw new UnsupportedOperationException("keys are added to a map with their values");
    }

    /** The value of a word that is not 0. */
    V read(long word);

    /** Whether what a word means leads to persistent objects. */
    boolean refers(long word);

    /** The word is no longer needed. */
    void release(long word);

    /** Tells what a word owns and leads to. */
    void trace(long word, Tracer tracer);
}
