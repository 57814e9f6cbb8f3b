package io.entresol.heap;

import io.entresol.heap.engine.Failure;
import io.entresol.heap.engine.Memory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Objects that keep room until Java collects garbage, although Java does not know that a collection
 * is needed. Cursors of a heap that are not closed are such: while one is open, freed blocks are
 * not used again. So are closed heaps and pools: their address space stays until nothing can touch
 * it.
 */
final class Uncollected {
    private static final int PAUSES = 50;
    private static final long PAUSE_NANOS = 1_000_000;
    /** A collection that takes longer, or is switched off, is not waited for. */
    private static final long COLLECTION_SECONDS = 2;

    private final AtomicInteger count = new AtomicInteger();

    void added() {
        count.incrementAndGet();
    }

    void removed() {
        count.decrementAndGet();
    }

    /**
     * Whether what failed for want of room may be tried again: some were let go that nobody refers
     * to. The failure is read then.
     */
    boolean reclaimAfter(long result) {
        boolean again = Memory.getLong(-result) == Failure.FULL && reclaim();
        if (again) {
            Failure.of(result);
        }
        return again;
    }

    /** Has those let go that nobody refers to; whether there were some. */
    boolean reclaim() {
        int before = count.get();
        if (before == 0) {
            return false;
        }
        // As Java does for the memory of buffers. On a busy machine it may be long until the first
        // is let go: a thing that nobody refers to is waited for.
        CountDownLatch collected = new CountDownLatch(1);
        AnyHeap.attach(new Object(), collected::countDown);
        System.gc();
        try {
            if (!collected.await(COLLECTION_SECONDS, TimeUnit.SECONDS)) {
                return false;
            }
        } catch (InterruptedException interrupt) {
            Thread.currentThread().interrupt();
            return false;
        }
        int known = before;
        for (int quiet = 0; known > 0 && quiet < PAUSES; quiet++) {
            LockSupport.parkNanos(PAUSE_NANOS);
            int now = count.get();
            if (now < known) {
                known = now;
                quiet = 0;
            }
        }
        return known < before;
    }
}
