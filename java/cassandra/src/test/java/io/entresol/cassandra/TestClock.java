package io.entresol.cassandra;

import org.apache.cassandra.utils.Clock;

/**
 * The node's clock, which tests move ahead, and hold where two tables must see one moment. Only the
 * time of day: timeouts run on.
 */
public final class TestClock implements Clock {
    private static volatile long aheadMillis;
    private static volatile long heldMillis;

    /** Moves the time ahead. */
    static void advance(long seconds) {
        aheadMillis += seconds * 1000;
    }

    /** The time stands still while an action runs. */
    static void hold(Runnable action) {
        heldMillis = System.currentTimeMillis() + aheadMillis;
        try {
            action.run();
        } finally {
            heldMillis = 0;
        }
    }

    @Override
    public long nanoTime() {
        return System.nanoTime();
    }

    @Override
    public long currentTimeMillis() {
        long held = heldMillis;
        return held == 0 ? System.currentTimeMillis() + aheadMillis : held;
    }
}
