package io.entresol.jdbc.internal.index;

import java.util.concurrent.atomic.AtomicLong;
import org.infinispan.Cache;
import org.infinispan.factories.ComponentRegistry;

/**
 * How complete the index of a cache is. An incomplete index answers nothing, rather than a part.
 *
 * <pre>
 * REBUILT ──► COMPLETE          UNKNOWN: Infinispan rebuilds it by itself and tells nobody when it
 *    └──────► FAILED            is done
 * </pre>
 */
public final class IndexState {
    /** Where it is. */
    public enum Stage { REBUILT, COMPLETE, FAILED, UNKNOWN }

    private volatile Stage stage;
    private volatile Throwable failure;
    private final AtomicLong done = new AtomicLong();
    private volatile long total;

    public IndexState(Stage stage) {
        this.stage = stage;
    }

    public static IndexState of(Cache<?, ?> cache) {
        IndexState state = ComponentRegistry.componentOf(cache, IndexState.class);
        return state == null ? new IndexState(Stage.UNKNOWN) : state;
    }

    /** Refuses a query, unless the index has every entry. */
    public void requireComplete(String cache) {
        String index = "the index of cache " + cache;
        switch (stage) {
            case COMPLETE -> { }
            case REBUILT -> throw new IllegalStateException(index + " is being rebuilt: " + done
                    + " of " + total + " entries are there; ask again when all are");
            case FAILED -> throw new IllegalStateException(index + " could not be rebuilt: "
                    + failure + "; start the cache again", failure);
            default -> throw new IllegalStateException(index + " is in memory, its entries are on "
                    + "flash, and startup-mode is not \"none\": then nobody can tell when the "
                    + "index has them all; expected <indexing storage=\"local-heap\" "
                    + "startup-mode=\"none\">, with which it is rebuilt before the cache serves");
        }
    }

    public boolean isComplete() {
        return stage == Stage.COMPLETE;
    }

    public void begin(long entries) {
        total = entries;
    }

    /** More entries are in the index; how many now. */
    public long add(long entries) {
        return done.addAndGet(entries);
    }

    long total() {
        return total;
    }

    public void complete() {
        stage = Stage.COMPLETE;
    }

    public void fail(Throwable reason) {
        failure = reason;
        stage = Stage.FAILED;
    }
}
