package io.entresol.infinispan;

import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/**
 * Acknowledged changes of a cache with write-behind that its store refuses. They wait in
 * Infinispan's queue, where readers find them, until the store takes them or the cache stops.
 * Infinispan itself would drop them after some attempts, and the next reader would find the former
 * entry. Thread-safe.
 */
final class Unwritten {
    /** Those who wait for room in the queue. */
    private final Set<CompletableFuture<Object>> waiting = ConcurrentHashMap.newKeySet();
    /** Keys that were removed from the store ahead of what waits in the queue. */
    private final Set<ByteBuffer> removed = ConcurrentHashMap.newKeySet();
    /** Whether all were. */
    private volatile boolean cleared;
    /** Whether to try again; false: the cache stops. */
    private CompletableFuture<Boolean> decided = new CompletableFuture<>();
    private boolean stopping;
    private int held;
    private long lost;

    /** Tries again once that may help. Nobody asks for the outcome of what is lost. */
    <T> CompletionStage<T> hold(Supplier<CompletionStage<T>> change) {
        synchronized (this) {
            held++;
        }
        return later(change).whenComplete((done, failure) -> {
            synchronized (this) {
                held--;
            }
        });
    }

    /** Whether any waits, or is being tried again. */
    synchronized boolean holdsAny() {
        return held > 0;
    }

    private <T> CompletionStage<T> later(Supplier<CompletionStage<T>> change) {
        CompletableFuture<Boolean> next;
        synchronized (this) {
            if (stopping) {
                lost++;
                return CompletableFuture.completedFuture(null);
            }
            next = decided;
        }
        return next.thenCompose(again -> again ? change.get() : later(change));
    }

    /** The store may take them now. */
    void tryAgain() {
        CompletableFuture<Boolean> now;
        synchronized (this) {
            if (stopping) {
                return;
            }
            now = decided;
            decided = new CompletableFuture<>();
        }
        now.complete(true);
    }

    /** What the store does not take from now on is lost. */
    void stop() {
        synchronized (this) {
            stopping = true;
        }
        decided.complete(false);
    }

    /** A key is removed ahead of its place in the queue: what was put before needs no writing. */
    void remove(byte[] key) {
        removed.add(ByteBuffer.wrap(key));
    }

    /** The same of all keys. */
    void clear() {
        cleared = true;
    }

    /** Whether a put of the key that comes now was made before the removal. */
    boolean isRemoved(byte[] key) {
        return cleared || !removed.isEmpty() && removed.contains(ByteBuffer.wrap(key));
    }

    /** Whether anything was removed ahead of its place in the queue. */
    boolean hasRemoved() {
        return !removed.isEmpty();
    }

    /** A put of the key is about to be in the queue, or its removal has had its turn. */
    void forget(byte[] key) {
        if (!removed.isEmpty()) {
            removed.remove(ByteBuffer.wrap(key));
        }
    }

    /** The removal of all has had its turn; puts that were made later follow. */
    void forgetAll() {
        removed.clear();
        cleared = false;
    }

    /** How many were told as done and are nowhere. */
    synchronized long lost() {
        return lost;
    }

    /** The outcome of a change that is not in the queue yet, or {@link #refuse} before. */
    CompletableFuture<Object> queued(CompletableFuture<Object> change) {
        CompletableFuture<Object> told = new CompletableFuture<>();
        waiting.add(told);
        change.whenComplete((value, failure) -> {
            waiting.remove(told);
            if (failure == null) {
                told.complete(value);
            } else {
                told.completeExceptionally(failure);
            }
        });
        return told;
    }

    /** Nobody is to wait for a queue that does not move. */
    void refuse(Throwable failure) {
        waiting.forEach(told -> told.completeExceptionally(failure));
    }
}
