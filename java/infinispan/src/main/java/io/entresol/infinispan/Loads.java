package io.entresol.infinispan;

import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Entries that are being loaded, so that a change of one waits until they are told.
 *
 * <p>Infinispan puts what it is told into memory, whatever happened to the key meanwhile. A get that
 * found an entry before it was removed would bring it back there, for all who ask later, if it were
 * told after the removal: as when two owners are asked and the slower one's answer is not needed.
 * So a change is over only when those who began to load the key before it are told, and have done
 * with it what they do in the thread that tells them. Who loads later finds what was changed.
 *
 * <p>Keys share places; a change may wait for a load of another key. It waits for some seconds at most,
 * for nobody knows what those do who are told; and not for one that is being told by the thread
 * that asks for the change. Thread-safe.
 */
final class Loads {
    private static final int PLACES = 1 << 12;
    private static final long MOST_SECONDS = 10;

    private final AtomicReferenceArray<Place> places = new AtomicReferenceArray<>(PLACES);
    /** Entries that the thread is telling. */
    private final ThreadLocal<int[]> telling = ThreadLocal.withInitial(() -> new int[1]);

    /** Loads of the keys of one place that began between the same two changes. */
    static final class Load {
        private final Place place;
        private int running;
        /** Null until a change waits. */
        private CompletableFuture<Void> over;

        private Load(Place place) {
            this.place = place;
        }
    }

    /** The keys of one hash. */
    private static final class Place {
        private Load latest = new Load(this);
        /** Loads that changes wait for. */
        private CompletableFuture<Void> before;

        synchronized Load begin() {
            latest.running++;
            return latest;
        }

        /** Who waits for these loads, if they were the last of them. */
        synchronized CompletableFuture<Void> end(Load load) {
            return --load.running == 0 ? load.over : null;
        }

        /** When all loads that began before are over; null if they are. */
        synchronized CompletableFuture<Void> before() {
            if (before != null && before.isDone()) {
                before = null;
            }
            if (latest.running > 0) {
                latest.over = new CompletableFuture<>();
                before = before == null ? latest.over
                        : CompletableFuture.allOf(before, latest.over);
                latest = new Load(this);
            }
            return before;
        }
    }

    /** Before the store is asked. */
    Load begin(byte[] key) {
        return place(key).begin();
    }

    /** Nobody is told any more. */
    void end(Load load) {
        CompletableFuture<Void> waited = load.place.end(load);
        if (waited != null) {
            waited.complete(null);
        }
    }

    /** Tells of an entry that was loaded, which ends the load. */
    void tell(Load load, Runnable told) {
        int[] depth = telling.get();
        depth[0]++;
        try {
            told.run();
        } finally {
            depth[0]--;
            end(load);
        }
    }

    /** The outcome of a change of the key, once those who loaded it before were told. */
    <T> CompletionStage<T> changed(byte[] key, CompletionStage<T> outcome) {
        return telling.get()[0] > 0 ? outcome : outcome.thenCompose(result -> {
            CompletableFuture<Void> before = place(key).before();
            return before == null ? CompletableFuture.completedFuture(result)
                    : before.copy().completeOnTimeout(null, MOST_SECONDS, TimeUnit.SECONDS)
                            .thenApply(over -> result);
        });
    }

    /** As {@link #changed}, of all keys. */
    <T> CompletionStage<T> allChanged(CompletionStage<T> outcome) {
        return telling.get()[0] > 0 ? outcome : outcome.thenCompose(result -> {
            CompletableFuture<Void> all = CompletableFuture.completedFuture(null);
            for (int number = 0; number < PLACES; number++) {
                Place place = places.get(number);
                CompletableFuture<Void> before = place == null ? null : place.before();
                all = before == null ? all : CompletableFuture.allOf(all, before);
            }
            return all.completeOnTimeout(null, MOST_SECONDS, TimeUnit.SECONDS)
                    .thenApply(over -> result);
        });
    }

    private Place place(byte[] key) {
        int number = Arrays.hashCode(key) * 0x9E3779B9 >>> 32 - Integer.numberOfTrailingZeros(PLACES);
        Place place = places.get(number);
        if (place != null) {
            return place;
        }
        places.compareAndSet(number, null, new Place());
        return places.get(number);
    }
}
