package io.entresol.collections.internal.blocks;

import io.entresol.collections.Tracer;
import java.util.function.LongConsumer;

/**
 * Encoded keys in a heap, each with a word that is not 0, in the order of some encoding. Changes
 * are part of the thread's current transaction, which must exist; reads may run beside changes of
 * other threads.
 */
public interface Entries {
    /** How many there are. */
    long size();

    /** The word of {@code key}; 0 if it is not there. */
    long get(byte[] key);

    /** Gives {@code key} a word; the one before, 0 if there was none. */
    long put(byte[] key, long word);

    /** Removes {@code key}; its word, 0 if it was not there. */
    long remove(byte[] key);

    /** Removes all; {@code words} is told each word. */
    void clear(LongConsumer words);

    /** Keeps transactions of other threads from changes until the current one ends. */
    void hold();

    /** The entries between two keys, one after the other. */
    Walk walk(Bounds bounds, boolean backwards);

    /** Tells what all of it is made of, but not what the words mean. */
    void trace(Tracer tracer);

    /** Entries one after the other. */
    interface Walk extends AutoCloseable {
        /** Without an entry. */
        Walk EMPTY = new Walk() {
            @Override
            public <T> T next(Reader<T> reader) {
                return null;
            }

            @Override
            public void close() {
                // It holds nothing.
            }
        };

        /** What {@code reader}, which gives no null, makes of the next entry; null at the end. */
        <T> T next(Reader<T> reader);

        @Override
        void close();
    }

    /** Sees an entry; what its word leads to is readable meanwhile. */
    interface Reader<T> {
        T read(byte[] key, long word);
    }
}
