package io.entresol.cassandra;

import io.entresol.TableBatch;

/** Many changes of a walk over a table, which are written as batches of some size. For one thread. */
final class Batches implements AutoCloseable {
    private static final int BYTES_MAX = 64 << 10;

    private final TableBatch batch;

    Batches(TableBatch batch) {
        this.batch = batch;
    }

    /** Where the next changes go; those before them may have been written. */
    TableBatch next() {
        if (batch.bytes() >= BYTES_MAX) {
            write();
        }
        return batch;
    }

    /** Writes what there is. */
    void write() {
        if (batch.bytes() > 0) {
            batch.write();
            batch.clear();
        }
    }

    /** Gives the memory back; what was not written is not. */
    @Override
    public void close() {
        batch.close();
    }
}
