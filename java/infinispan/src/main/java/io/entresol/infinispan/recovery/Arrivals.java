package io.entresol.infinispan.recovery;

import io.entresol.Entries;
import io.entresol.PutOptions;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntFunction;
import org.infinispan.AdvancedCache;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
import org.infinispan.context.impl.FlagBitSets;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachelistener.annotation.TopologyChanged;
import org.infinispan.notifications.cachelistener.event.TopologyChangedEvent;

/**
 * Segments whose entries come from other nodes while users change them. Infinispan keeps arriving
 * entries from replacing later writes of users in memory, but not in stores. This class does so in
 * the store: an arriving entry is put only if the key has none, and if no user removed it
 * meanwhile.
 *
 * <p>A segment is dropped before its entries come, so entries found in it were written since then.
 */
public final class Arrivals implements OwnedSegments {
    /** The flags come in a call of their own, right before that of the write. */
    private static final ThreadLocal<Boolean> COMES = ThreadLocal.withInitial(() -> false);

    private final IntFunction<Entries> store;
    private final Runnable atClose;
    /** Of each segment that comes, what users removed since it began to. */
    private final Map<Integer, Removed> arriving = new ConcurrentHashMap<>();
    /** Null until the first are told. */
    private IntSet owned;
    /** Whether all owners have what they own by the topology that is installed or about to be. */
    private boolean settled;

    private Arrivals(IntFunction<Entries> store, Kept kept, Runnable atClose) {
        this.store = store;
        this.atClose = atClose;
        this.owned = kept == Kept.ENTRIES ? null : IntSets.mutableEmptySet();
    }

    /** Into the store of a cache that its node is about to join; {@code store} gives segments. */
    public static Arrivals into(AdvancedCache<?, ?> cache, IntFunction<Entries> store, Kept kept) {
        return into(cache, store, kept, () -> { });
    }

    /** The same; {@code atClose} runs before the store closes. */
    static Arrivals into(AdvancedCache<?, ?> cache, IntFunction<Entries> store, Kept kept,
            Runnable atClose) {
        Arrivals arrivals = new Arrivals(store, kept, atClose);
        cache.addListener(new Settling(arrivals));
        return arrivals;
    }

    /** What a store has when its node joins. */
    public enum Kept {
        /** Those of the segments that its first topology gives it. */
        ENTRIES,
        /** None. */
        NOTHING
    }

    @Override
    public void expect(long flags) {
        COMES.set((flags & FlagBitSets.PUT_FOR_STATE_TRANSFER) != 0);
    }

    @Override
    public boolean comes() {
        boolean comes = COMES.get();
        COMES.set(false);
        return comes;
    }

    /**
     * Puts what comes, unless users know better. What comes into a segment that is all here is what
     * a merge of partitions resolved: it replaces what there is, as it does in memory.
     */
    @Override
    public CompletionStage<Optional<Long>> put(int segment, byte[] key, List<ByteBuffer> value) {
        Removed removed = arriving.get(segment);
        Entries entries = store.apply(segment);
        if (removed == null) {
            return isOwned(segment)
                    ? entries.putAsync(ByteBuffer.wrap(key), value, PutOptions.DEFAULT)
                    : CompletableFuture.completedFuture(Optional.empty());
        }
        if (removed.has(key)) {
            return CompletableFuture.completedFuture(Optional.empty());
        }
        return entries.putAsync(ByteBuffer.wrap(key), value, PutOptions.DEFAULT.ifAbsent())
                .thenCompose(version -> undo(entries, key, version, removed.has(key)));
    }

    @Override
    public void removing(int segment, byte[] key) {
        Removed removed = arriving.get(segment);
        if (removed != null) {
            removed.keys.add(ByteBuffer.wrap(key));
        }
    }

    @Override
    public void clearing() {
        arriving.values().forEach(removed -> removed.all = true);
    }

    /**
     * The node owns these segments from now on; those that are new are dropped. Nothing comes into
     * them where all owners have what they own, as where the node is the cluster's first, or the
     * last owner left: what users remove would be noted for as long as nobody else joins.
     */
    @Override
    public synchronized CompletionStage<Void> own(IntSet segments) {
        if (owned == null) {
            owned = IntSets.mutableCopyFrom(segments);
            return CompletableFuture.completedFuture(null);
        }
        IntSet added = IntSets.mutableCopyFrom(segments);
        added.removeAll(owned);
        CompletionStage<Void> dropped = drop(store, added);
        if (!settled) {
            added.forEach((int segment) -> arriving.put(segment, new Removed()));
        }
        owned.addAll(added);
        return dropped;
    }

    @Override
    public synchronized CompletionStage<Void> disown(IntSet segments) {
        if (owned != null) {
            owned.removeAll(segments);
        }
        segments.forEach((int segment) -> arriving.remove(segment));
        return drop(store, segments);
    }

    @Override
    public void close() {
        atClose.run();
    }

    private synchronized void installing(boolean whole) {
        settled = whole;
        if (whole) {
            arriving.clear();
        }
    }

    private synchronized boolean isOwned(int segment) {
        return owned != null && owned.contains(segment);
    }

    /** The user may have removed the key after it was looked for, and before it was put. */
    private static CompletionStage<Optional<Long>> undo(Entries entries, byte[] key,
            Optional<Long> version, boolean gone) {
        return version.isPresent() && gone
                ? entries.removeAsync(key, version.get()).thenApply(removed -> Optional.empty())
                : CompletableFuture.completedFuture(version);
    }

    /** Drops segments of a store, those that have entries. */
    public static CompletionStage<Void> drop(IntFunction<Entries> store, IntSet segments) {
        CompletionStage<Void> dropped = CompletableFuture.completedFuture(null);
        for (int segment : segments.toIntArray()) {
            Entries entries = store.apply(segment);
            if (entries.count() > 0) {
                dropped = dropped.thenCompose(done -> entries.clearAsync());
            }
        }
        return dropped;
    }

    /** What users removed from a segment while it comes. */
    private static final class Removed {
        private final Set<ByteBuffer> keys = ConcurrentHashMap.newKeySet();
        private volatile boolean all;

        private boolean has(byte[] key) {
            return all || keys.contains(ByteBuffer.wrap(key));
        }
    }

    /** Notices whether anything comes. Public because Infinispan calls it. */
    @Listener
    public static final class Settling {
        private final Arrivals arrivals;

        private Settling(Arrivals arrivals) {
            this.arrivals = arrivals;
        }

        /** Before a topology is installed; nothing comes where all who are written to are read. */
        @TopologyChanged
        public void topologyChanged(TopologyChangedEvent<?, ?> event) {
            if (event.isPre()) {
                arrivals.installing(event.getReadConsistentHashAtEnd()
                        .equals(event.getWriteConsistentHashAtEnd()));
            }
        }
    }
}
