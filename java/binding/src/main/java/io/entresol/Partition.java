package io.entresol;

import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/**
 * A slice of a space that is counted, scanned and dropped by itself. A key always belongs to the
 * same partition of a space, which must be a function of the key.
 */
public final class Partition extends Entries {
    private static final int DROP_PARTITION = 2;

    private final int space;
    private final int partition;

    Partition(Engine engine, int space, int partition) {
        super(engine, place(space, partition));
        this.space = space;
        this.partition = partition;
    }

    @Override
    public long count() {
        return engine.count(place, false);
    }

    @Override
    public CompletionStage<Void> clearAsync() {
        return job(DROP_PARTITION);
    }

    @Override
    public Flow.Publisher<Entry> scan(Contents contents) {
        return new Scan(engine, space, new int[] {partition}, contents);
    }
}
