package io.entresol.heap;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * The wait of one transaction for another: pauses that grow, up to a limit. Java waits, not native
 * code, so that a virtual thread gives its carrier to others.
 */
final class Patience {
    static final Duration LIMIT = Duration.ofSeconds(10);

    private static final long PAUSE_NANOS = 20_000;
    private static final long PAUSE_NANOS_MAX = 2_000_000;

    private final long until = System.nanoTime() + LIMIT.toNanos();
    private long pause = PAUSE_NANOS;

    boolean isOver() {
        return System.nanoTime() - until >= 0;
    }

    void pause() {
        LockSupport.parkNanos(pause);
        pause = Math.min(2 * pause, PAUSE_NANOS_MAX);
    }
}
