package io.entresol;

import java.util.Optional;
import java.util.concurrent.CompletionStage;

/** The common part of stores and caches: spaces on a device, and an end. Space 0 is their own. */
abstract sealed class Opened extends Space implements AutoCloseable permits Store, Cache {
    private static final int SYNC = 1;

    Opened(Engine engine) {
        super(engine, 0);
    }

    /** A table of entries, 0 to 65534; 0 is the one that this object is itself. */
    public final Space space(int number) {
        return new Space(engine, number);
    }

    /** Once done, every write acknowledged before the call survives power loss. */
    public final CompletionStage<Void> syncAsync() {
        return job(SYNC);
    }

    /** On return every write acknowledged before the call survives power loss. */
    public final void sync() {
        engine.await(syncAsync().toCompletableFuture());
    }

    /** Figures since it was opened. */
    public final StoreStatistics statistics() {
        return engine.statistics();
    }

    /**
     * All segments of the device in about so many groups of neighbours, for a map of it: a JSON
     * array, which {@code entresol.h} describes. Empty while the store waits for its device.
     */
    public final Optional<String> segments(int groups) {
        return engine.segments(groups);
    }

    /**
     * Finishes what was begun, syncs, and makes the next open fast. Waits for the device, also
     * where another thread closes it: on return it may be opened again.
     */
    @Override
    public final void close() {
        engine.close();
    }
}
