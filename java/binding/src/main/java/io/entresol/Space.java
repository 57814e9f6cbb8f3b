package io.entresol;

import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/** A table of entries inside a store; its own operations are on partition 0. */
public class Space extends Entries {
    private static final int DROP_SPACE = 3;

    private final int space;

    Space(Engine engine, int space) {
        super(engine, place(space, 0));
        this.space = space;
    }

    /** A slice of the space. */
    public final Partition partition(int number) {
        return new Partition(engine, space, number);
    }

    /** How many entries all partitions have, as {@link Entries#count}. */
    @Override
    public final long count() {
        return engine.count(place, true);
    }

    /** Removes the entries of all partitions. */
    @Override
    public final CompletionStage<Void> clearAsync() {
        return job(DROP_SPACE);
    }

    /** The entries of all partitions. */
    @Override
    public final Flow.Publisher<Entry> scan(Contents contents) {
        return new Scan(engine, space, null, contents);
    }

    /** The entries of some partitions. */
    public final Flow.Publisher<Entry> scan(int[] partitions, Contents contents) {
        for (int partition : partitions) {
            place(space, partition);
        }
        return new Scan(engine, space, partitions.clone(), contents);
    }
}
