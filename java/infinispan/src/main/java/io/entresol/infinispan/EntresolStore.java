package io.entresol.infinispan;

import io.entresol.Durability;
import io.entresol.Entries;
import io.entresol.Entry;
import io.entresol.PutOptions;
import io.entresol.Space;
import io.entresol.Store;
import io.entresol.StoreException;
import io.entresol.StoreStatistics;
import io.entresol.infinispan.recovery.Arrivals;
import io.entresol.infinispan.recovery.Recovery;
import io.entresol.infinispan.recovery.RecoveryOptions;
import io.entresol.infinispan.recovery.Withdrawal;
import io.entresol.infinispan.recovery.WithdrawalMark;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.infinispan.commons.ThreadGroups;
import org.infinispan.commons.configuration.ConfiguredBy;
import org.infinispan.commons.marshall.Marshaller;
import org.infinispan.commons.util.ByteQuantity;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
import org.infinispan.container.impl.InternalDataContainer;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.MarshallableEntryFactory;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.infinispan.persistence.spi.PersistenceException;
import org.infinispan.util.logging.Log;
import org.infinispan.util.logging.LogFactory;
import org.reactivestreams.FlowAdapters;
import org.reactivestreams.Publisher;

/**
 * A cache's entries on flash: a segment of the cache is a partition of the store. A method waits
 * for the device only in a thread that waits anyway; entries in memory are answered at once.
 *
 * <p>Expired entries stay on flash until {@link #purgeExpired} has reported them, and nobody gets
 * them meanwhile. A cache that never held an entry with an end is counted without reading any
 * entry.
 */
@ConfiguredBy(EntresolStoreConfiguration.class)
public class EntresolStore<K, V> implements NonBlockingStore<K, V> {
    private static final Log LOG = LogFactory.getLog(EntresolStore.class);
    /** Space of what the store keeps for itself. */
    private static final int OWN_SPACE = 1;
    /** There if entries that end were ever written. */
    private static final byte[] MORTAL = "mortal".getBytes(StandardCharsets.US_ASCII);
    /** How long others wait for the close of a store that failed: its device may never answer. */
    private static final long CLOSING_SECONDS = 10;

    private InitializationContext context;
    private EntresolStoreConfiguration configuration;
    private Marshaller marshaller;
    private MarshallableEntryFactory<K, V> factory;
    private Executor executor;
    private StorePlace place;
    private WithdrawalMark mark;
    private Recovery recovery;
    /** Null where entries are taken as they come. */
    private volatile Arrivals arrivals;
    private volatile Store store;
    private volatile StoreHealth health;
    /** Null until the store is open. */
    private StoreMetrics metrics;
    private volatile boolean mortal;
    private final Habits habits = new Habits();
    private final Loads loads = new Loads();
    private final GivenUp givenUp = new GivenUp();
    private final Unwritten unwritten = new Unwritten();
    /** No entry on flash ends before this moment. */
    private final AtomicLong firstEnd = new AtomicLong(Long.MAX_VALUE);

    @Override
    public CompletionStage<Void> start(InitializationContext given) {
        context = given;
        configuration = given.getConfiguration();
        marshaller = given.getPersistenceMarshaller();
        factory = given.getMarshallableEntryFactory();
        executor = given.getNonBlockingExecutor();
        place = new StorePlace(
                given.getGlobalConfiguration(), given.getCache().getName(), configuration);
        mark = WithdrawalMark.of(given.getGlobalConfiguration(), given.getCache().getName(),
                place.ownFile().orElse(null));
        return given.getBlockingManager().runBlocking(this::open, "entresol-start");
    }

    /** A store that failed is given some time to close, in a thread of its own. */
    @Override
    public CompletionStage<Void> stop() {
        StoreHealth known = health;
        if (known == null || !known.hasFailed()) {
            return context.getBlockingManager().runBlocking(this::close, "entresol-stop");
        }
        CompletableFuture<Void> closed = new CompletableFuture<>();
        // It may wait, whatever the thread may do that stops the cache.
        Thread closing = new Thread(ThreadGroups.BLOCKING_GROUP, () -> {
            close();
            closed.complete(null);
        }, "entresol closes " + context.getCache().getName());
        closing.setDaemon(true);
        closing.start();
        return closed.completeOnTimeout(null, CLOSING_SECONDS, TimeUnit.SECONDS);
    }

    /** Removes the cache's file as well; devices that were named stay as they are. */
    @Override
    public CompletionStage<Void> destroy() {
        return context.getBlockingManager().runBlocking(() -> {
            close();
            try {
                if (place.ownFile().isPresent()) {
                    Files.deleteIfExists(place.ownFile().get());
                }
                mark.remove();
            } catch (IOException failure) {
                throw new UncheckedIOException("cannot remove " + place, failure);
            }
        }, "entresol-destroy");
    }

    @Override
    public Set<Characteristic> characteristics() {
        return EnumSet.of(
                Characteristic.SEGMENTABLE, Characteristic.BULK_READ, Characteristic.EXPIRATION);
    }

    @Override
    public CompletionStage<Boolean> isAvailable() {
        StoreHealth known = health;
        return known == null ? CompletableFuture.completedFuture(false)
                : context.getBlockingManager().supplyBlocking(known::look, "entresol-look");
    }

    /** Figures of the flash store since it was opened; none while it is stopped. */
    public Optional<StoreStatistics> statistics() {
        return Optional.ofNullable(store).map(Store::statistics);
    }

    @Override
    public CompletionStage<MarshallableEntry<K, V>> load(int segment, Object key) {
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
                return watched(found).thenApply(entry -> loaded(key, entry));
            } finally {
                Loads.end(load);
            }
        }
        Thread caller = Thread.currentThread();
        habits.begins();
        CompletableFuture<MarshallableEntry<K, V>> told = new CompletableFuture<>();
        watched(found.whenComplete((entry, failure) -> habits.ends(caller)))
                .thenApply(entry -> loaded(key, entry))
                .whenComplete((entry, failure) -> loads.tell(load, told, entry, failure));
        return told;
    }

    /** Reads in the calling thread if that one waits anyway. */
    private CompletableFuture<Optional<Entry>> find(int segment, byte[] key) {
        if (!habits.waits()) {
            return entries(segment).getAsync(key, EventLoop.orElse(executor)).toCompletableFuture();
        }
        try {
            return CompletableFuture.completedFuture(entries(segment).entry(key));
        } catch (StoreException failure) {
            return CompletableFuture.failedFuture(failure);
        }
    }

    private MarshallableEntry<K, V> loaded(Object key, Optional<Entry> found) {
        StoredEntry stored = found.map(entry -> StoredEntry.decode(entry.value())).orElse(null);
        return stored == null || stored.hasEnded(now()) ? null : entry(key, stored);
    }

    @Override
    public CompletionStage<Boolean> containsKey(int segment, Object key) {
        if (mortal) {
            return NonBlockingStore.super.containsKey(segment, key);
        }
        // What was written while it was looked for may have ended by now.
        return watched(entries(segment).containsAsync(marshalled(key))).thenCompose(there ->
                there && mortal ? NonBlockingStore.super.containsKey(segment, key)
                        : CompletableFuture.completedFuture(there));
    }

    @Override
    public CompletionStage<Void> write(int segment, MarshallableEntry<? extends K, ? extends V> e) {
        // First: what is refused must not leave it to the thread's next write, of whatever cache.
        boolean comes = arrivals != null && arrivals.comes();
        StoredEntry stored = StoredEntry.of(e);
        byte[] key = StoredEntry.bytes(e.getKeyBytes());
        CompletionStage<?> written = changed(() -> unwritten.isRemoved(key)
                ? CompletableFuture.completedFuture(Optional.empty())
                : stored.isMortal() && !mortal
                ? becomeMortal().thenCompose(ok -> put(segment, key, stored.encode(), comes))
                : put(segment, key, stored.encode(), comes));
        return loads.changed(key, written).thenAccept(version -> {
            // Only now: a purge that began before may have missed the entry.
            if (stored.isMortal()) {
                firstEnd.accumulateAndGet(stored.expires(), Math::min);
            }
        });
    }

    private CompletionStage<Optional<Long>> put(int segment, byte[] key, List<ByteBuffer> value,
            boolean comes) {
        return comes ? arrivals.put(segment, key, value)
                : entries(segment).putAsync(ByteBuffer.wrap(key), value, PutOptions.DEFAULT);
    }

    @Override
    public boolean ignoreCommandWithFlags(long flags) {
        if (arrivals != null) {
            arrivals.expect(flags);
        }
        return false;
    }

    @Override
    public CompletionStage<Boolean> delete(int segment, Object key) {
        byte[] bytes = marshalled(key);
        if (arrivals != null) {
            arrivals.removing(segment, bytes);
        }
        unwritten.forget(bytes);
        return loads.changed(bytes, changed(() -> entries(segment).removeAsync(bytes)));
    }

    /** A cache that is removed is emptied as it stops, and nobody closes a store that fails then. */
    @Override
    public CompletionStage<Void> clear() {
        if (context.getCache().getStatus().isStopping()) {
            // It may be in the queue, before puts that were made later.
            unwritten.forgetAll();
            health.emptied();
            return opened().clearAsync().exceptionallyCompose(failure ->
                    context.getBlockingManager().runBlocking(
                            () -> leaveEntries(failure), "entresol-leave"));
        }
        if (arrivals != null) {
            arrivals.clearing();
        }
        unwritten.forgetAll();
        StoreHealth known = health;
        return loads.allChanged(known == null ? opened().clearAsync()
                : known.changedByDrop(() -> opened().clearAsync()));
    }

    @Override
    public CompletionStage<Void> addSegments(IntSet segments) {
        return watchedDrop(arrivals != null ? arrivals.own(segments)
                : Arrivals.drop(this::entries, givenUp.regained(segments)));
    }

    @Override
    public CompletionStage<Void> removeSegments(IntSet segments) {
        CompletionStage<Void> removed = arrivals != null ? arrivals.disown(segments)
                : configuration.ignoreModifications() ? CompletableFuture.completedFuture(null)
                : Arrivals.drop(this::entries, givenUp.add(segments));
        IntSet gone = IntSets.immutableSet(segments);
        // What was loaded meanwhile may have come into memory after Infinispan emptied that.
        return loads.allChanged(watchedDrop(removed)).thenRun(() -> forgetLoaded(gone));
    }

    private void forgetLoaded(IntSet segments) {
        if (context.getCache().getAdvancedCache().getDataContainer()
                instanceof InternalDataContainer<?, ?> memory) {
            memory.clear(segments);
        }
    }

    @Override
    public CompletionStage<Long> size(IntSet segments) {
        if (!mortal) {
            CompletionStage<Long> all = approximateSize(segments);
            // What was written while they were counted may have ended by now.
            if (!mortal) {
                return all;
            }
        }
        return stored(segments, Entries.Contents.ENTRIES)
                .filter(entry -> !StoredEntry.decode(entry.value()).hasEnded(now()))
                .count().toCompletionStage();
    }

    @Override
    public CompletionStage<Long> approximateSize(IntSet segments) {
        long count = configuration.segmented()
                ? segments.intStream().mapToLong(segment -> entries(segment).count()).sum()
                : opened().count();
        return CompletableFuture.completedFuture(count);
    }

    @Override
    public Publisher<MarshallableEntry<K, V>> publishEntries(IntSet segments,
            Predicate<? super K> filter, boolean includeValues) {
        return stored(segments, Entries.Contents.ENTRIES).mapOptional(found -> {
            StoredEntry stored = StoredEntry.decode(found.value());
            K key = unmarshalled(found.key());
            boolean wanted = !stored.hasEnded(now()) && (filter == null || filter.test(key));
            return wanted ? Optional.of(entry(key, stored)) : Optional.empty();
        });
    }

    @Override
    public Publisher<K> publishKeys(IntSet segments, Predicate<? super K> filter) {
        if (mortal) {
            return NonBlockingStore.super.publishKeys(segments, filter);
        }
        return stored(segments, Entries.Contents.KEYS).concatMapMaybe(found -> {
            K key = unmarshalled(found.key());
            if (filter != null && !filter.test(key)) {
                return Maybe.empty();
            }
            // What was written since the scan began may have ended since.
            return !mortal ? Maybe.just(key)
                    : Maybe.fromCompletionStage(load(segment(key), key)).map(loaded -> key);
        });
    }

    @Override
    public Publisher<MarshallableEntry<K, V>> purgeExpired() {
        return Flowable.defer(() -> {
            long now = now();
            // Infinispan asks a store that is only to be read, too.
            if (firstEnd.get() > now || configuration.ignoreModifications()) {
                return Flowable.empty();
            }
            firstEnd.set(Long.MAX_VALUE);
            return seen(opened().scan())
                    .concatMapMaybe(found -> purged(found, now))
                    .doOnError(failure -> firstEnd.set(0))
                    .doOnCancel(() -> firstEnd.set(0));
        });
    }

    /** What Infinispan calls the store where it is not available. */
    @Override
    public String toString() {
        StoreHealth known = health;
        return known == null ? "entresol-store" : known.toString();
    }

    private Maybe<MarshallableEntry<K, V>> purged(Entry found, long now) {
        StoredEntry stored = StoredEntry.decode(found.value());
        if (!stored.hasEnded(now)) {
            if (stored.isMortal()) {
                firstEnd.accumulateAndGet(stored.expires(), Math::min);
            }
            return Maybe.empty();
        }
        K key = unmarshalled(found.key());
        int segment = segment(key);
        Arrivals coming = arrivals;
        if (coming != null) {
            // What another node still sends of the key is older.
            coming.removing(segment, found.key());
        }
        // What was written since stays.
        return Maybe.fromCompletionStage(
                        entries(segment).removeAsync(found.key(), found.version()))
                .filter(removed -> removed)
                .map(removed -> entry(key, stored));
    }

    private void open() {
        boolean shared = context.getCache().getCacheConfiguration().clustering().cacheMode()
                .needsStateTransfer();
        RecoveryOptions recovering = shared ? configuration.recovery() : null;
        if (recovering != null) {
            RecoveryOptions.check(context, configuration,
                    configuration.get(EntresolStoreConfiguration.DURABILITY));
        }
        UndeployedDevices undeployed = UndeployedDevices.of(context.getGlobalConfiguration());
        // Before a new store is made where the former one was.
        undeployed.sweepGone();
        if (mark.read().isPresent()) {
            place.listed().forEach(UndeployedDevices::sweepIfGone);
        }
        Store opened = place.open(executor);
        store = opened;
        try {
            mortal = isMortal(opened);
            firstEnd.set(mortal ? 0 : Long.MAX_VALUE);
            if (recovering != null) {
                recover(recovering);
            } else if (shared) {
                beginAnew();
            }
            DeviceFiles files = place.files();
            // Who recovers tells by the lineage of the entries whether they count.
            if (recovering == null && undeployed.hasAny(files.paths())) {
                forget("they are of a cache that was undeployed");
            }
            undeployed.strike(files.paths());
            StoredSegments.check(context, place, opened, opened.space(OWN_SPACE));
            health = new StoreHealth(context, opened, files, unwritten, !shared ? null
                    : Withdrawal.ready(context, files.toString(), mark, opened::statistics));
            metrics = StoreMetrics.publish(context,
                    ByteQuantity.parse(configuration.get(EntresolStoreConfiguration.MEMORY)),
                    opened::statistics);
            OpenStores.add(this, context, health, loads);
        } catch (RuntimeException failure) {
            close();
            throw failure;
        }
    }

    /** Where that cannot be read, entries may end. */
    private static boolean isMortal(Store opened) {
        try {
            return opened.space(OWN_SPACE).contains(MORTAL);
        } catch (StoreException damaged) {
            return true;
        }
    }

    /** Infinispan joins the cluster after the store has started, so the store may wait here. */
    private void recover(RecoveryOptions recovering) {
        Optional<String> withdrew = mark.read();
        recovery = Recovery.begin(context, recovering, store.space(OWN_SPACE),
                withdrew.isPresent() ? Recovery.Worth.WORTHLESS : Recovery.Worth.AS_SAID);
        if (!recovery.keepsEntries()) {
            forget(withdrew.orElse("the cluster went on without it"));
        }
        arrivals = recovery.arrivals(this::entries);
    }

    /**
     * Without recovery old entries are taken as they are, as Infinispan has it, unless this node
     * withdrew. A store that begins empty can tell what comes from what users wrote meanwhile.
     */
    private void beginAnew() {
        mark.read().ifPresent(this::forget);
        var cache = context.getCache().getCacheConfiguration();
        boolean each = configuration.segmented() && !configuration.async().enabled()
                && !configuration.ignoreModifications()
                && !cache.persistence().passivation()
                && !cache.transaction().transactionMode().isTransactional();
        if (each && store.count() == 0) {
            arrivals = Arrivals.into(context.getCache().getAdvancedCache(), this::entries,
                    Arrivals.Kept.NOTHING);
        }
    }

    /** Drops entries that do not count any more, before the node takes part in the cache. */
    private void forget(String why) {
        if (store.count() > 0) {
            LOG.infof("Cache %s: the entries of this node's store are dropped: %s",
                    context.getCache().getName(), why);
        }
        store.clear();
        mark.remove();
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

    private void close() {
        OpenStores.remove(this);
        if (metrics != null) {
            metrics.close();
            metrics = null;
        }
        if (recovery != null) {
            recovery.close();
            recovery = null;
        }
        arrivals = null;
        Store open = store;
        StoreHealth known = health;
        if (known != null && open != null && !known.hasFailed()) {
            StoredSegments.leave(context, open, open.space(OWN_SPACE));
        }
        store = null;
        if (known != null) {
            known.close();
        } else if (open != null) {
            open.close();
        }
    }

    /**
     * Notes on flash that entries may end, before the first of them is there: durable whatever the
     * entries are, for one that outlives its note would be there for ever.
     */
    private CompletionStage<Void> becomeMortal() {
        return opened().space(OWN_SPACE)
                .putAsync(MORTAL, new byte[0], PutOptions.DEFAULT.durability(Durability.SYNCED))
                .thenAccept(version -> {
                    // There may be some from before, whose note was lost.
                    firstEnd.set(0);
                    mortal = true;
                });
    }

    Store opened() {
        Store open = store;
        if (open == null) {
            throw new PersistenceException("the store of cache "
                    + context.getCache().getName() + " is stopped; start it first");
        }
        return open;
    }

    /** The entries of a segment; all of them where the cache does not tell segments apart. */
    Entries entries(int segment) {
        return opened().partition(configuration.segmented() ? segment : 0);
    }

    private Flowable<Entry> stored(IntSet segments, Entries.Contents contents) {
        Space space = opened();
        return seen(configuration.segmented()
                ? space.scan(segments.toIntArray(), contents) : space.scan(contents));
    }

    /** Who iterates is told of a failure as it is: what was given out cannot be taken back. */
    private Flowable<Entry> seen(Flow.Publisher<Entry> scan) {
        return Flowable.fromPublisher(FlowAdapters.toPublisher(scan)).doOnError(failure -> {
            StoreHealth known = health;
            if (known != null) {
                known.met(failure);
            }
        });
    }

    private <T> CompletionStage<T> changed(Supplier<CompletionStage<T>> change) {
        StoreHealth known = health;
        return known == null ? change.get() : known.changed(change);
    }

    private <T> CompletionStage<T> watched(CompletionStage<T> outcome) {
        StoreHealth known = health;
        return known == null ? outcome : known.watched(outcome);
    }

    private CompletionStage<Void> watchedDrop(CompletionStage<Void> dropped) {
        StoreHealth known = health;
        return known == null ? dropped : known.watchedDrop(dropped);
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
