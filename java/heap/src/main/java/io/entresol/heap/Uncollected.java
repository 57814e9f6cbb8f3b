package io.entresol.heap;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Memory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Cursors of a heap that are not closed. While one is open, what is freed is not used again; one
 * that nobody refers to any more is closed when Java collects garbage, and Java does not know that
 * the heap is full.
 */
final class Cursors {
    private static final int PAUSES = 50;
    private static final long PAUSE_NANOS = 1_000_000;

    private final AtomicInteger open = new AtomicInteger();

    void opened() {
        open.incrementAndGet();
    }

    void closed() {
        open.decrementAndGet();
    }

    /**
     * Whether what failed for want of room may be tried again: some cursors were closed that nobody
     * refers to. The failure is read then.
     */
    boolean reclaimAfter(long result) {
        boolean again = Memory.getLong(-result) == Failure.FULL && reclaim();
        if (again) {
            Failure.of(result);
        }
        return again;
    }

    /** Has cursors closed that nobody refers to; whether there were some. */
    boolean reclaim() {
        int before = open.get();
        if (before == 0) {
            return false;
        }
        // As Java does for the memory of buffers.
        System.gc();
        int known = before;
        for (int quiet = 0; known > 0 && quiet < PAUSES; quiet++) {
            LockSupport.parkNanos(PAUSE_NANOS);
            int now = open.get();
            if (now < known) {
                known = now;
                quiet = 0;
            }
        }
        return known < before;
    }
}
