package io.entresol.grid.bench;

import java.io.IOException;

/** A way into one cache, for many threads. */
interface Door extends AutoCloseable {
    /** A thread's own way. */
    Connection connect() throws IOException;

    @Override
    void close();

    /** Puts and gets of one thread. */
    interface Connection extends AutoCloseable {
        void put(byte[] key, byte[] value) throws IOException;

        byte[] get(byte[] key) throws IOException;

        @Override
        void close() throws IOException;
    }
}
