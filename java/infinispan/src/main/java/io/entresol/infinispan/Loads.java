package io.entresol.infinispan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Entries that are being loaded, so that a change of one waits until its loads are answered.
 *
 * <p>Infinispan puts a loaded entry into memory, whatever happened to the key meanwhile. If a get
 * found an entry before its removal and were answered after it, the entry would be back in memory
 * for all later reads. That happens, for example, when two owners are asked and the slower answer
 * is not needed. So a change is complete only when the reads that began to load the key before it
 * have ended ({@link LoadingReads}), and when other loads have been answered, with all work that
 * follows in the answering thread. Later loads find the change.
 *
 * <p>Keys share places, so a change may wait for a load of another key. It waits for some seconds
 * at most, because the work of the readers is unknown, and never for a load that is being answered
 * by the thread that makes the change. Thread-safe.
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

        /** Nobody is told any more of what one of them found. */
        void end() {
            CompletableFuture<Void> waited = place.end(this);
            if (waited != null) {
                waited.complete(null);
            }
        }

        boolean isOf(Loads loads) {
            return place.loads() == loads;
        }
    }

    /** The keys of one hash. */
    private final class Place {
        private Load latest = new Load(this);
        /** Loads that changes wait for. */
        private CompletableFuture<Void> before;

        Loads loads() {
            return Loads.this;
        }

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

    /** Before the store is asked: a load that the caller ends; null if the thread's read does. */
    Load begin(byte[] key) {
        Load load = place(key).begin();
        return Reader.ofThread().takes(load) ? null : load;
    }

    /** Ends a load that no read ends. */
    static void end(Load load) {
        if (load != null) {
            load.end();
        }
    }

    /** Tells of an entry that was loaded, or of a failure, and ends the load. */
    <T> void tell(Load load, CompletableFuture<T> told, T entry, Throwable failure) {
        int[] depth = telling.get();
        depth[0]++;
        try {
            if (failure == null) {
                told.complete(entry);
            } else {
                told.completeExceptionally(failure);
            }
        } finally {
            depth[0]--;
            end(load);
        }
    }

    /** The outcome of a change of the key, once those who loaded it before were told. */
    <T> CompletionStage<T> changed(byte[] key, CompletionStage<T> outcome) {
        return isTold() ? outcome : outcome.thenCompose(result -> {
            CompletableFuture<Void> before = place(key).before();
            return before == null ? CompletableFuture.completedFuture(result)
                    : before.copy().completeOnTimeout(null, MOST_SECONDS, TimeUnit.SECONDS)
                            .thenApply(over -> result);
        });
    }

    /** As {@link #changed}, of all keys. */
    <T> CompletionStage<T> allChanged(CompletionStage<T> outcome) {
        return isTold() ? outcome : outcome.thenCompose(result -> {
            List<CompletableFuture<Void>> running = new ArrayList<>();
            for (int number = 0; number < PLACES; number++) {
                Place place = places.get(number);
                CompletableFuture<Void> before = place == null ? null : place.before();
                if (before != null) {
                    running.add(before);
                }
            }
            return running.isEmpty() ? CompletableFuture.completedFuture(result)
                    : CompletableFuture.allOf(running.toArray(CompletableFuture[]::new))
                            .completeOnTimeout(null, MOST_SECONDS, TimeUnit.SECONDS)
                            .thenApply(over -> result);
        });
    }

    /** Whether the calling thread is told of an entry. */
    private boolean isTold() {
        return telling.get()[0] > 0 || Reader.ofThread().isLoading(this);
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
