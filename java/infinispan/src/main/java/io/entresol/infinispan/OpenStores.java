package io.entresol.infinispan;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.infinispan.configuration.global.GlobalConfiguration;

/**
 * The stores that are open in this process, so that a cache which has stopped leaves none open.
 * With write-behind Infinispan stops a store once its queue is written. It waits for ever for a
 * store that is not available. It does not stop a store that refused the last change of the queue,
 * whose device would then be in use until the process ends.
 */
final class OpenStores {
    private static final Map<EntresolStore<?, ?>, OpenStore<?, ?>> ALL = new ConcurrentHashMap<>();
    /** How much longer than from one look of Infinispan's to the next one is waited for. */
    private static final long PATIENCE_MILLIS = 10_000;

    private OpenStores() {
    }

    static void add(EntresolStore<?, ?> store, OpenStore<?, ?> open) {
        ALL.put(store, open);
    }

    static void remove(EntresolStore<?, ?> store) {
        ALL.remove(store);
    }

    /**
     * Once those who loaded these keys before were told; of all keys, if there are none. It is for
     * changes that a store does not see before they are over: see {@link Loads}.
     */
    static CompletionStage<Void> changed(GlobalConfiguration container, String cache,
            Collection<?> keys) {
        CompletionStage<Void> over = CompletableFuture.completedFuture(null);
        for (OpenStore<?, ?> open : ALL.values()) {
            if (open.isOf(container, cache)) {
                over = over.thenCombine(open.changed(keys), (one, other) -> null);
            }
        }
        return over;
    }

    /** Why what is to be written behind would wait now; null: it would not. */
    static CompletionStage<Void> refusalBehind(GlobalConfiguration container, String cache) {
        return refusal(container, cache, StoreHealth::refusalBehind);
    }

    /** The same of a removal. */
    static CompletionStage<Void> refusalOfRemovals(GlobalConfiguration container, String cache) {
        return refusal(container, cache, StoreHealth::refusalOfAll);
    }

    private static CompletionStage<Void> refusal(GlobalConfiguration container, String cache,
            Function<StoreHealth, CompletionStage<Void>> question) {
        for (OpenStore<?, ?> open : ALL.values()) {
            CompletionStage<Void> refusal = open.isOf(container, cache)
                    ? question.apply(open.health()) : null;
            if (refusal != null) {
                return refusal;
            }
        }
        return null;
    }

    /** Keys are about to be put: what was removed of them before is not all that there is. */
    static void putting(GlobalConfiguration container, String cache, Collection<?> keys) {
        for (OpenStore<?, ?> open : ALL.values()) {
            if (open.isOf(container, cache)) {
                open.putting(keys);
            }
        }
    }

    /** The outcome of a change that is not in the queue yet, or why that does not move. */
    static CompletionStage<Object> queued(GlobalConfiguration container, String cache,
            CompletableFuture<Object> change) {
        return queued(container, cache, change, StoreHealth::queued);
    }

    /** The same of a removal. */
    static CompletionStage<Object> queuedRemoval(GlobalConfiguration container, String cache,
            CompletableFuture<Object> removal) {
        return queued(container, cache, removal, StoreHealth::queuedRemoval);
    }

    private static CompletionStage<Object> queued(GlobalConfiguration container, String cache,
            CompletableFuture<Object> change,
            BiFunction<StoreHealth, CompletableFuture<Object>, CompletionStage<Object>> kind) {
        CompletionStage<Object> told = change;
        for (OpenStore<?, ?> open : ALL.values()) {
            if (open.isOf(container, cache) && open.health().unwritten() != null) {
                told = kind.apply(open.health(), told.toCompletableFuture());
            }
        }
        return told;
    }

    /**
     * Removes keys, all if there are none, from stores that are full at once: the queue, in which
     * the removal comes after what has no room, would wait for it.
     */
    static CompletionStage<Void> makeRoom(GlobalConfiguration container, String cache,
            Collection<?> keys) {
        CompletionStage<Void> made = CompletableFuture.completedFuture(null);
        for (OpenStore<?, ?> open : ALL.values()) {
            if (open.isOf(container, cache) && open.health().needsRoom()) {
                made = made.thenCombine(open.makeRoom(keys), (one, other) -> null);
            }
        }
        return made;
    }

    /** A queue that waits for a store of the cache is to be refused now, rather than never. */
    static void stopping(GlobalConfiguration container, String cache) {
        for (OpenStore<?, ?> open : ALL.values()) {
            if (open.isOf(container, cache)) {
                open.health().stops();
                if (open.lookMillis() > 0) {
                    open.health().stopsWaiting(open.lookMillis() + PATIENCE_MILLIS);
                }
            }
        }
    }

    /** Stops what Infinispan left open. */
    static void stopped(GlobalConfiguration container, String cache) {
        for (EntresolStore<?, ?> store : List.copyOf(ALL.keySet())) {
            OpenStore<?, ?> open = ALL.get(store);
            if (open != null && open.isOf(container, cache)) {
                store.stop().toCompletableFuture().join();
            }
        }
    }
}
