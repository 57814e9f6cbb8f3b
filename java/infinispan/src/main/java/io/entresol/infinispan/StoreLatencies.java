package io.entresol.infinispan;

/** Is told how long calls of a store took. Any thread calls it, and waits until it returns. */
public interface StoreLatencies {
    /** A read took so many nanoseconds, from the call to its end. */
    void read(long nanos);

    /** So did a write or a removal. */
    void write(long nanos);
}
