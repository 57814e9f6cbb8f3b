package io.entresol.infinispan;

import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongUnaryOperator;
import org.infinispan.commons.executors.NonBlockingResource;

/**
 * Detects threads that wait for each entry that they load, as a thread does that calls {@code get}
 * of a cache. Such a thread reads flash by itself at half the cost, because nobody has to wake it.
 *
 * <p>A thread counts as waiting once it was found waiting for a future at the end of several loads
 * in a row. Now and then it is checked again. A thread that begins a load before the last one has
 * ended, or does something else meanwhile, does not wait. Infinispan's own threads must not wait,
 * and are never checked. Thread-safe; it remembers some threads and forgets others.
 */
final class BlockingCallers {
    private static final int PLACES = 256;
    /** Loads in a row that make a habit. */
    private static final int KNOWN = 8;
    private static final int MOST = 16;
    /** One load in so many tells whether the habit lasts. */
    private static final int LOOK = 64;

    /** For each place a thread, its loads under way, its turns, and how often it was waiting. */
    private final AtomicLongArray places = new AtomicLongArray(PLACES);

    /** Whether the calling thread waits for what it loads now. */
    boolean waits() {
        Thread thread = Thread.currentThread();
        if (thread.getThreadGroup() instanceof NonBlockingResource) {
            return false;
        }
        long state = places.get(place(thread));
        if (!isOf(state, thread) || found(state) < KNOWN || underWay(state) > 0) {
            return false;
        }
        int turn = (turn(state) + 1) % LOOK;
        change(thread, old -> state(thread, underWay(old), turn, found(old)));
        return turn != 0;
    }

    /** The calling thread has begun to load an entry, and does not wait yet. */
    void begins() {
        Thread thread = Thread.currentThread();
        places.updateAndGet(place(thread), old -> {
            if (!isOf(old, thread)) {
                return state(thread, 1, 0, 0);
            }
            int others = underWay(old);
            return state(thread, Math.min(others + 1, 255), 0, others > 0 ? 0 : found(old));
        });
    }

    /** What the thread began to load is about to be told, by another thread unless it was quick. */
    void ends(Thread thread) {
        boolean tells = thread != Thread.currentThread();
        boolean waits = LockSupport.getBlocker(thread) instanceof ForkJoinPool.ManagedBlocker;
        change(thread, old -> {
            int found = waits ? Math.min(found(old) + 1, MOST) : 0;
            int left = Math.max(underWay(old) - 1, 0);
            return state(thread, left, turn(old), tells ? found : found(old));
        });
    }

    private void change(Thread thread, LongUnaryOperator change) {
        places.updateAndGet(place(thread),
                old -> isOf(old, thread) ? change.applyAsLong(old) : old);
    }

    private static int place(Thread thread) {
        return (int) (thread.getId() * 0x9E3779B97F4A7C15L >>> 56);
    }

    private static long state(Thread thread, int underWay, int turn, int found) {
        return thread.getId() << 32 | (long) underWay << 16 | (long) turn << 8 | found;
    }

    private static boolean isOf(long state, Thread thread) {
        return state >>> 32 == (thread.getId() & 0xFFFF_FFFFL);
    }

    private static int underWay(long state) {
        return (int) (state >>> 16) & 0xFF;
    }

    private static int turn(long state) {
        return (int) (state >>> 8) & 0xFF;
    }

    private static int found(long state) {
        return (int) state & 0xFF;
    }
}
