package io.entresol.infinispan;

import io.entresol.Durability;
import io.entresol.Entries;
import io.entresol.PutOptions;
import io.entresol.StoreException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Whether entries of an open store may end, and when the first of them does. A note on flash says
 * that some may, so that a store which never held such an entry is counted without reading any.
 * Thread-safe.
 */
final class Mortality {
    /** There if entries that end were ever written. */
    private static final byte[] NOTE = "mortal".getBytes(StandardCharsets.US_ASCII);

    private final Entries own;
    private volatile boolean mortal;
    /** No entry on flash ends before this moment. */
    private final AtomicLong firstEnd;

    private Mortality(Entries own, boolean mortal) {
        this.own = own;
        this.mortal = mortal;
        this.firstEnd = new AtomicLong(mortal ? 0 : Long.MAX_VALUE);
    }

    /** Reads the note; where that cannot be read, entries may end. */
    static Mortality of(Entries own) {
        try {
            return new Mortality(own, own.contains(NOTE));
        } catch (StoreException damaged) {
            return new Mortality(own, true);
        }
    }

    /** Whether any entry may end. */
    boolean mayEnd() {
        return mortal;
    }

    /**
     * Notes on flash that entries may end, before the first of them is there: durable whatever the
     * entries are, for one that outlives its note would be there for ever.
     */
    CompletionStage<Void> begin() {
        return own.putAsync(NOTE, new byte[0], PutOptions.DEFAULT.durability(Durability.SYNCED))
                .thenAccept(version -> {
                    // There may be some from before, whose note was lost.
                    firstEnd.set(0);
                    mortal = true;
                });
    }

    /** An entry is on flash. */
    void holds(StoredEntry entry) {
        if (entry.isMortal()) {
            firstEnd.accumulateAndGet(entry.expires(), Math::min);
        }
    }

    /** Whether an entry may have ended by now. */
    boolean anyEnded(long now) {
        return firstEnd.get() <= now;
    }

    /** Each entry that is on flash is looked at from now on, and is held again unless it ended. */
    void beginPurge() {
        firstEnd.set(Long.MAX_VALUE);
    }

    /** Not each entry was looked at. */
    void leavePurge() {
        firstEnd.set(0);
    }
}
