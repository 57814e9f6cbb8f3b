package io.entresol.infinispan;

import io.entresol.Entries;
import io.entresol.Entry;
import io.entresol.PutOptions;
import io.entresol.Store;
import io.entresol.StoreException;
import io.entresol.StoreStatistics;
import io.entresol.infinispan.recovery.OwnedSegments;
import io.entresol.infinispan.recovery.Withdrawal;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.function.IntFunction;
import java.util.function.Predicate;
import org.infinispan.commons.marshall.Marshaller;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
import org.infinispan.configuration.cache.AsyncStoreConfiguration;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.container.impl.InternalDataContainer;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.MarshallableEntryFactory;
import org.infinispan.util.logging.Log;
import org.infinispan.util.logging.LogFactory;
import org.reactivestreams.FlowAdapters;

/**
 * The store of a cache while it is open: everything that exists between its start and its stop. A
 * method waits for the device only in a thread that waits anyway; entries in memory are answered at
 * once. Its methods mean what those of {@link EntresolStore} mean. Thread-safe.
 */
final class OpenStore<K, V> {
    /** Space of what the store keeps for itself. */
    static final int OWN_SPACE = 1;
    private static final Log LOG = LogFactory.getLog(OpenStore.class);

    private final InitializationContext context;
    private final EntresolStoreConfiguration configuration;
    private final Marshaller marshaller;
    private final MarshallableEntryFactory<K, V> factory;
    private final Executor executor;
    private final StorePlace place;
    private final Store store;
    private final IntFunction<Entries> entries;
    private final OwnedSegments owned;
    private final Mortality mortality;
    private final StoreHealth health;
    private final StoreMetrics metrics;
    private final BlockingCallers callers = new BlockingCallers();
    private final Loads loads = new Loads();
    private final Unwritten unwritten = new Unwritten();

    /**
     * Of a store that is open on a place. {@code withdrawal} is empty where no other node can take
     * over.
     */
    OpenStore(InitializationContext context, StorePlace place, Store store, OwnedSegments owned,
            Optional<Withdrawal> withdrawal) {
        this.context = context;
        this.configuration = context.getConfiguration();
        this.marshaller = context.getPersistenceMarshaller();
        this.factory = context.getMarshallableEntryFactory();
        this.executor = context.getNonBlockingExecutor();
        this.place = place;
        this.store = store;
        this.entries = entries(store, configuration);
        this.owned = owned;
        this.mortality = Mortality.of(store.space(OWN_SPACE));
        this.health = new StoreHealth(context, store, place.files(), unwritten,
                withdrawal.orElse(null));
        this.metrics = StoreMetrics.publish(context, configuration.memoryBytes(),
                store::statistics);
    }

    /** The entries of each segment; all of them where a cache does not tell segments apart. */
    static IntFunction<Entries> entries(Store store, EntresolStoreConfiguration configuration) {
        return configuration.segmented() ? store::partition : segment -> store.partition(0);
    }

    /** Whether it is of the cache of that name in that container. */
    boolean isOf(GlobalConfiguration container, String cache) {
        return context.getGlobalConfiguration() == container
                && context.getCache().getName().equals(cache);
    }

    StoreHealth health() {
        return health;
    }

    CompletionStage<Boolean> isAvailable() {
        return context.getBlockingManager().supplyBlocking(health::look, "entresol-look");
    }

    StoreStatistics statistics() {
        return store.statistics();
    }

    Optional<String> segments(int groups) {
        return store.segments(groups);
    }

    CompletionStage<MarshallableEntry<K, V>> load(int segment, Object key) {
        byte[] bytes = marshalled(key);
        Loads.Load load = loads.begin(bytes);
        CompletableFuture<Optional<Entry>> found;
        try {
            found = find(segment, bytes);
        } catch (RuntimeException failure) {
            Loads.end(load);
            throw failure;
        }
        if (found.isDone()) {
            try {
                return health.watched(found).thenApply(entry -> loaded(key, entry));
            } finally {
                Loads.end(load);
            }
        }
        Thread caller = Thread.currentThread();
        callers.begins();
        CompletableFuture<MarshallableEntry<K, V>> told = new CompletableFuture<>();
        health.watched(found.whenComplete((entry, failure) -> callers.ends(caller)))
                .thenApply(entry -> loaded(key, entry))
                .whenComplete((entry, failure) -> loads.tell(load, told, entry, failure));
        return told;
    }

    /** Reads in the calling thread if that one waits anyway. */
    private CompletableFuture<Optional<Entry>> find(int segment, byte[] key) {
        if (!callers.waits()) {
            return entries.apply(segment).getAsync(key, EventLoop.orElse(executor))
                    .toCompletableFuture();
        }
        try {
            return CompletableFuture.completedFuture(entries.apply(segment).entry(key));
        } catch (StoreException failure) {
            return CompletableFuture.failedFuture(failure);
        }
    }

    private MarshallableEntry<K, V> loaded(Object key, Optional<Entry> found) {
        StoredEntry stored = found.map(entry -> StoredEntry.decode(entry.value())).orElse(null);
        return stored == null || stored.hasEnded(now()) ? null : entry(key, stored);
    }

    CompletionStage<Boolean> containsKey(int segment, Object key) {
        if (mortality.mayEnd()) {
            return isLoaded(segment, key);
        }
        // What was written while it was looked for may have ended by now.
        return health.watched(entries.apply(segment).containsAsync(marshalled(key)))
                .thenCompose(there -> there && mortality.mayEnd() ? isLoaded(segment, key)
                        : CompletableFuture.completedFuture(there));
    }

    private CompletionStage<Boolean> isLoaded(int segment, Object key) {
        return load(segment, key).thenApply(Objects::nonNull);
    }

    CompletionStage<Void> write(int segment, MarshallableEntry<? extends K, ? extends V> e) {
        // First: what is refused must not leave it to the thread's next write, of whatever cache.
        boolean comes = owned.comes();
        StoredEntry stored = StoredEntry.of(e);
        byte[] key = StoredEntry.bytes(e.getKeyBytes());
        CompletionStage<?> written = health.changed(() -> unwritten.isRemoved(key)
                ? CompletableFuture.completedFuture(Optional.empty())
                : stored.isMortal() && !mortality.mayEnd()
                ? mortality.begin().thenCompose(ok -> put(segment, key, stored.encode(), comes))
                : put(segment, key, stored.encode(), comes));
        // Only then: a purge that began before may have missed the entry.
        return loads.changed(key, written).thenAccept(version -> mortality.holds(stored));
    }

    private CompletionStage<Optional<Long>> put(int segment, byte[] key, List<ByteBuffer> value,
            boolean comes) {
        return comes ? owned.put(segment, key, value)
                : entries.apply(segment).putAsync(ByteBuffer.wrap(key), value, PutOptions.DEFAULT);
    }

    /** Takes note of the flags of the command whose write follows. */
    void expect(long flags) {
        owned.expect(flags);
    }

    CompletionStage<Boolean> delete(int segment, Object key) {
        byte[] bytes = marshalled(key);
        owned.removing(segment, bytes);
        unwritten.forget(bytes);
        return loads.changed(bytes,
                health.changed(() -> entries.apply(segment).removeAsync(bytes)));
    }

    /** A cache that is removed is emptied as it stops, and nobody closes a store that fails then. */
    CompletionStage<Void> clear() {
        if (context.getCache().getStatus().isStopping()) {
            // It may be in the queue, before puts that were made later.
            unwritten.forgetAll();
            health.emptied();
            return store.clearAsync().exceptionallyCompose(failure ->
                    context.getBlockingManager().runBlocking(
                            () -> leaveEntries(failure), "entresol-leave"));
        }
        owned.clearing();
        unwritten.forgetAll();
        return loads.allChanged(health.changedByDrop(store::clearAsync));
    }

    /** Whoever opens the store next drops what could not be dropped. */
    private void leaveEntries(Throwable failure) {
        String name = context.getCache().getName();
        health.endsWith(failure);
        try {
            UndeployedDevices.of(context.getGlobalConfiguration()).note(health.devices());
            LOG.warnf(failure, "Cache %s is removed, but its store takes no writes: what it has on"
                    + " %s is dropped when that is opened next", name, place);
        } catch (IOException | UncheckedIOException unnoted) {
            LOG.errorf(failure, "Cache %s is removed, but its store takes no writes, and that what"
                    + " it has on %s does not count could not be noted (%s): remove it yourself",
                    name, place, unnoted.getMessage());
        }
    }

    CompletionStage<Void> addSegments(IntSet segments) {
        return health.watchedDrop(owned.own(segments));
    }

    CompletionStage<Void> removeSegments(IntSet segments) {
        CompletionStage<Void> removed = configuration.ignoreModifications()
                ? CompletableFuture.completedFuture(null) : owned.disown(segments);
        IntSet gone = IntSets.immutableSet(segments);
        // What was loaded meanwhile may have come into memory after Infinispan emptied that.
        return loads.allChanged(health.watchedDrop(removed)).thenRun(() -> forgetLoaded(gone));
    }

    private void forgetLoaded(IntSet segments) {
        if (context.getCache().getAdvancedCache().getDataContainer()
                instanceof InternalDataContainer<?, ?> memory) {
            memory.clear(segments);
        }
    }

    CompletionStage<Long> size(IntSet segments) {
        if (!mortality.mayEnd()) {
            CompletionStage<Long> all = approximateSize(segments);
            // What was written while they were counted may have ended by now.
            if (!mortality.mayEnd()) {
                return all;
            }
        }
        return stored(segments, Entries.Contents.ENTRIES)
                .filter(entry -> !StoredEntry.decode(entry.value()).hasEnded(now()))
                .count().toCompletionStage();
    }

    CompletionStage<Long> approximateSize(IntSet segments) {
        long count = configuration.segmented()
                ? segments.intStream().mapToLong(segment -> entries.apply(segment).count()).sum()
                : store.count();
        return CompletableFuture.completedFuture(count);
    }

    Flowable<MarshallableEntry<K, V>> publishEntries(IntSet segments,
            Predicate<? super K> filter) {
        return stored(segments, Entries.Contents.ENTRIES).mapOptional(found -> {
            StoredEntry stored = StoredEntry.decode(found.value());
            K key = unmarshalled(found.key());
            boolean wanted = !stored.hasEnded(now()) && (filter == null || filter.test(key));
            return wanted ? Optional.of(entry(key, stored)) : Optional.empty();
        });
    }

    Flowable<K> publishKeys(IntSet segments, Predicate<? super K> filter) {
        if (mortality.mayEnd()) {
            return publishEntries(segments, filter).map(MarshallableEntry::getKey);
        }
        return stored(segments, Entries.Contents.KEYS).concatMapMaybe(found -> {
            K key = unmarshalled(found.key());
            if (filter != null && !filter.test(key)) {
                return Maybe.empty();
            }
            // What was written since the scan began may have ended since.
            return !mortality.mayEnd() ? Maybe.just(key)
                    : Maybe.fromCompletionStage(load(segment(key), key)).map(loaded -> key);
        });
    }

    Flowable<MarshallableEntry<K, V>> purgeExpired() {
        long now = now();
        // Infinispan asks a store that is only to be read, too.
        if (!mortality.anyEnded(now) || configuration.ignoreModifications()) {
            return Flowable.empty();
        }
        mortality.beginPurge();
        return seen(store.scan())
                .concatMapMaybe(found -> purged(found, now))
                .doOnError(failure -> mortality.leavePurge())
                .doOnCancel(mortality::leavePurge);
    }

    private Maybe<MarshallableEntry<K, V>> purged(Entry found, long now) {
        StoredEntry stored = StoredEntry.decode(found.value());
        if (!stored.hasEnded(now)) {
            mortality.holds(stored);
            return Maybe.empty();
        }
        K key = unmarshalled(found.key());
        int segment = segment(key);
        // What another node still sends of the key is older.
        owned.removing(segment, found.key());
        // What was written since stays.
        return Maybe.fromCompletionStage(
                        entries.apply(segment).removeAsync(found.key(), found.version()))
                .filter(removed -> removed)
                .map(removed -> entry(key, stored));
    }

    /** Once those who loaded these keys before were told; of all keys, if there are none. */
    CompletionStage<Void> changed(Collection<?> keys) {
        CompletionStage<Void> over = CompletableFuture.completedFuture(null);
        if (keys.isEmpty()) {
            return loads.allChanged(over);
        }
        for (Object key : keys) {
            over = over.thenCombine(loads.changed(marshalled(key),
                    CompletableFuture.completedFuture(null)), (one, other) -> null);
        }
        return over;
    }

    /** Keys are about to be put: what was removed of them before is not all that there is. */
    void putting(Collection<?> keys) {
        Unwritten waits = health.unwritten();
        if (waits != null && waits.hasRemoved()) {
            keys.forEach(key -> waits.forget(marshalled(key)));
        }
    }

    /** Removes keys, all if there are none, ahead of what waits for room in the queue. */
    CompletionStage<Void> makeRoom(Collection<?> keys) {
        CompletionStage<Void> all = CompletableFuture.completedFuture(null);
        if (keys.isEmpty()) {
            health.unwritten().clear();
            all = health.watchedDrop(store.clearAsync());
        }
        for (Object key : keys) {
            byte[] bytes = marshalled(key);
            health.unwritten().remove(bytes);
            all = all.thenCombine(
                    health.watched(entries.apply(segment(key)).removeAsync(bytes)),
                    (one, other) -> null);
        }
        return all.thenRun(health::makesRoom);
    }

    /** How often Infinispan looks at it; zero if nothing waits for the store to be available. */
    long lookMillis() {
        AsyncStoreConfiguration behind = configuration.async();
        return behind.enabled() && !behind.failSilently() ? Math.max(0, context.getCache()
                .getCacheConfiguration().persistence().availabilityInterval()) : 0;
    }

    /** Closes the store; one that failed is left as it is. */
    void close() {
        metrics.close();
        owned.close();
        if (!health.hasFailed()) {
            StoredSegments.leave(context, store, store.space(OWN_SPACE));
        }
        health.close();
    }

    /** What Infinispan calls the store where it is not available. */
    @Override
    public String toString() {
        return health.toString();
    }

    private Flowable<Entry> stored(IntSet segments, Entries.Contents contents) {
        return seen(configuration.segmented()
                ? store.scan(segments.toIntArray(), contents) : store.scan(contents));
    }

    /** Who iterates is told of a failure as it is: what was given out cannot be taken back. */
    private Flowable<Entry> seen(Flow.Publisher<Entry> scan) {
        return Flowable.fromPublisher(FlowAdapters.toPublisher(scan)).doOnError(health::met);
    }

    private int segment(Object key) {
        return context.getKeyPartitioner().getSegment(key);
    }

    private MarshallableEntry<K, V> entry(Object key, StoredEntry stored) {
        return stored.toEntry(key, factory, context.getByteBufferFactory(), marshaller);
    }

    private long now() {
        return context.getTimeService().wallClockTime();
    }

    private byte[] marshalled(Object key) {
        return StoredEntry.marshalled(key, marshaller);
    }

    private K unmarshalled(byte[] key) {
        return StoredEntry.unmarshalled(key, marshaller);
    }
}
