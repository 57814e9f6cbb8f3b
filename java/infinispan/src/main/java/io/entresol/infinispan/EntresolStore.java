package io.entresol.infinispan;

import io.entresol.Compression;
import io.entresol.Durability;
import io.entresol.Entries;
import io.entresol.Entry;
import io.entresol.PutOptions;
import io.entresol.Space;
import io.entresol.Store;
import io.entresol.StoreException;
import io.entresol.StoreOptions;
import io.entresol.StoreStatistics;
import io.entresol.infinispan.recovery.Arrivals;
import io.entresol.infinispan.recovery.Recovery;
import io.entresol.infinispan.recovery.RecoveryOptions;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import org.infinispan.commons.configuration.ConfiguredBy;
import org.infinispan.commons.marshall.Marshaller;
import org.infinispan.commons.util.ByteQuantity;
import org.infinispan.commons.util.IntSet;
import org.infinispan.persistence.PersistenceUtil;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.MarshallableEntryFactory;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.infinispan.persistence.spi.PersistenceException;
import org.reactivestreams.FlowAdapters;
import org.reactivestreams.Publisher;

/**
 * A cache's entries on flash: a segment of the cache is a partition of the store. No method waits
 * for the device in a thread that does not wait anyway; what memory holds is answered at once.
 *
 * <p>Entries that end stay on flash until {@link #purgeExpired} has told of them, and are given to
 * nobody meanwhile. A cache none of whose entries ever ended is counted without reading any.
 */
@ConfiguredBy(EntresolStoreConfiguration.class)
public class EntresolStore<K, V> implements NonBlockingStore<K, V> {
    /** Space of what the store keeps for itself. */
    private static final int OWN_SPACE = 1;
    /** There if entries that end were ever written. */
    private static final byte[] MORTAL = "mortal".getBytes(StandardCharsets.US_ASCII);

    private InitializationContext context;
    private EntresolStoreConfiguration configuration;
    private Marshaller marshaller;
    private MarshallableEntryFactory<K, V> factory;
    private Executor executor;
    private Path file;
    private Recovery recovery;
    /** Null unless the cache's cluster recovers from its stores. */
    private volatile Arrivals arrivals;
    private volatile Store store;
    private volatile boolean mortal;
    private final Habits habits = new Habits();
    /** No entry on flash ends before this moment. */
    private final AtomicLong firstEnd = new AtomicLong(Long.MAX_VALUE);

    @Override
    public CompletionStage<Void> start(InitializationContext given) {
        context = given;
        configuration = given.getConfiguration();
        marshaller = given.getPersistenceMarshaller();
        factory = given.getMarshallableEntryFactory();
        executor = given.getNonBlockingExecutor();
        return given.getBlockingManager().runBlocking(this::open, "entresol-start");
    }

    @Override
    public CompletionStage<Void> stop() {
        return context.getBlockingManager().runBlocking(this::close, "entresol-stop");
    }

    /** Removes the cache's file as well; devices that were named stay as they are. */
    @Override
    public CompletionStage<Void> destroy() {
        return context.getBlockingManager().runBlocking(() -> {
            close();
            try {
                if (file != null) {
                    Files.deleteIfExists(file);
                }
            } catch (IOException failure) {
                throw new UncheckedIOException("cannot remove " + file, failure);
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
        Store open = store;
        return CompletableFuture.completedFuture(open != null && !open.statistics().poisoned());
    }

    /** Figures of the flash store since it was opened; none while it is stopped. */
    public Optional<StoreStatistics> statistics() {
        return Optional.ofNullable(store).map(Store::statistics);
    }

    @Override
    public CompletionStage<MarshallableEntry<K, V>> load(int segment, Object key) {
        byte[] bytes = marshalled(key);
        if (habits.waits()) {
            try {
                return CompletableFuture.completedFuture(
                        loaded(key, entries(segment).entry(bytes)));
            } catch (StoreException failure) {
                return CompletableFuture.failedFuture(failure);
            }
        }
        CompletableFuture<Optional<Entry>> found =
                entries(segment).getAsync(bytes, EventLoop.orElse(executor))
                        .toCompletableFuture();
        if (found.isDone()) {
            return found.thenApply(entry -> loaded(key, entry));
        }
        Thread caller = Thread.currentThread();
        habits.begins();
        return found.handle((entry, failure) -> {
            habits.ends(caller);
            if (failure != null) {
                throw failure instanceof CompletionException wrapped ? wrapped
                        : new CompletionException(failure);
            }
            return loaded(key, entry);
        });
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
        return entries(segment).containsAsync(marshalled(key));
    }

    @Override
    public CompletionStage<Void> write(int segment, MarshallableEntry<? extends K, ? extends V> e) {
        StoredEntry stored = StoredEntry.of(e);
        byte[] key = StoredEntry.bytes(e.getKeyBytes());
        boolean comes = arrivals != null && arrivals.comes();
        CompletionStage<?> ready = stored.isMortal() && !mortal ? becomeMortal() : null;
        CompletionStage<?> written = ready == null
                ? put(segment, key, stored.encode(), comes)
                : ready.thenCompose(ok -> put(segment, key, stored.encode(), comes));
        return written.thenAccept(version -> {
            // Only now: a purge that began before may have missed the entry.
            if (stored.isMortal()) {
                firstEnd.accumulateAndGet(stored.expires(), Math::min);
            }
        });
    }

    private CompletionStage<?> put(int segment, byte[] key, List<ByteBuffer> value,
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
        return entries(segment).removeAsync(bytes);
    }

    @Override
    public CompletionStage<Void> clear() {
        if (arrivals != null) {
            arrivals.clearing();
        }
        return opened().clearAsync();
    }

    @Override
    public CompletionStage<Void> addSegments(IntSet segments) {
        return arrivals == null ? CompletableFuture.completedFuture(null)
                : arrivals.own(segments);
    }

    @Override
    public CompletionStage<Void> removeSegments(IntSet segments) {
        if (arrivals != null) {
            return arrivals.disown(segments);
        }
        CompletionStage<Void> removed = CompletableFuture.completedFuture(null);
        for (int segment : segments.toIntArray()) {
            if (entries(segment).count() > 0) {
                removed = removed.thenCompose(done -> entries(segment).clearAsync());
            }
        }
        return removed;
    }

    @Override
    public CompletionStage<Long> size(IntSet segments) {
        if (!mortal) {
            return approximateSize(segments);
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
        Flowable<K> keys = stored(segments, Entries.Contents.KEYS)
                .map(found -> unmarshalled(found.key()));
        return filter == null ? keys : keys.filter(filter::test);
    }

    @Override
    public Publisher<MarshallableEntry<K, V>> purgeExpired() {
        return Flowable.defer(() -> {
            long now = now();
            if (firstEnd.get() > now) {
                return Flowable.empty();
            }
            firstEnd.set(Long.MAX_VALUE);
            return Flowable.fromPublisher(FlowAdapters.toPublisher(opened().scan()))
                    .concatMapMaybe(found -> purged(found, now))
                    .doOnError(failure -> firstEnd.set(0))
                    .doOnCancel(() -> firstEnd.set(0));
        });
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
        int segment = context.getKeyPartitioner().getSegment(key);
        // What was written since stays.
        return Maybe.fromCompletionStage(
                        entries(segment).removeAsync(found.key(), found.version()))
                .filter(removed -> removed)
                .map(removed -> entry(key, stored));
    }

    private void open() {
        RecoveryOptions recovering = context.getCache().getCacheConfiguration().clustering()
                .cacheMode().needsStateTransfer() ? configuration.recovery() : null;
        if (recovering != null) {
            RecoveryOptions.check(context, configuration,
                    configuration.get(EntresolStoreConfiguration.DURABILITY));
        }
        openStore();
        if (recovering != null) {
            recover(recovering);
        }
    }

    /** Infinispan joins the cluster after the store has started, so the store may wait here. */
    private void recover(RecoveryOptions recovering) {
        try {
            recovery = Recovery.begin(context, recovering, store.space(OWN_SPACE));
            if (!recovery.keepsEntries()) {
                store.clear();
            }
            arrivals = recovery.arrivals(this::entries);
        } catch (RuntimeException failure) {
            close();
            throw failure;
        }
    }

    private void openStore() {
        StoreOptions options = configuration.get(EntresolStoreConfiguration.DEVICES) == null
                ? StoreOptions.on(makeFolder())
                : StoreOptions.onDevices(configuration.get(EntresolStoreConfiguration.DEVICES));
        if (configuration.get(EntresolStoreConfiguration.SELECTION).equals("stripe")) {
            options = options.striped();
        }
        String compression = configuration.get(EntresolStoreConfiguration.COMPRESSION);
        store = Store.open(options
                .capacity(size(EntresolStoreConfiguration.CAPACITY))
                .memory(size(EntresolStoreConfiguration.MEMORY))
                .durability(Durability.parse(
                        configuration.get(EntresolStoreConfiguration.DURABILITY)))
                .compression(Compression.valueOf(compression.toUpperCase(Locale.ROOT)))
                .executor(executor));
        mortal = store.space(OWN_SPACE).contains(MORTAL);
        firstEnd.set(mortal ? 0 : Long.MAX_VALUE);
    }

    private Path makeFolder() {
        String cache = PersistenceUtil.sanitizedCacheName(context.getCache().getName());
        Path folder = PersistenceUtil.getQualifiedLocation(context.getGlobalConfiguration(),
                configuration.get(EntresolStoreConfiguration.PATH), cache, "entresol");
        try {
            Files.createDirectories(folder);
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot make the folder " + folder, failure);
        }
        file = folder.resolve("entresol.data");
        return file;
    }

    private void close() {
        if (recovery != null) {
            recovery.close();
            recovery = null;
            arrivals = null;
        }
        Store open = store;
        if (open != null) {
            store = null;
            open.close();
        }
    }

    /** Notes on flash that entries may end, before the first of them is there. */
    private CompletionStage<Void> becomeMortal() {
        return opened().space(OWN_SPACE).putAsync(MORTAL, new byte[0])
                .thenAccept(version -> mortal = true);
    }

    private long size(
            org.infinispan.commons.configuration.attributes.AttributeDefinition<String> attribute) {
        return ByteQuantity.parse(configuration.get(attribute));
    }

    private Store opened() {
        Store open = store;
        if (open == null) {
            throw new PersistenceException("the store of cache "
                    + context.getCache().getName() + " is stopped; start it first");
        }
        return open;
    }

    /** The entries of a segment; all of them where the cache does not tell segments apart. */
    private Entries entries(int segment) {
        return opened().partition(configuration.segmented() ? segment : 0);
    }

    private Flowable<Entry> stored(IntSet segments, Entries.Contents contents) {
        Space space = opened();
        return Flowable.fromPublisher(FlowAdapters.toPublisher(configuration.segmented()
                ? space.scan(segments.toIntArray(), contents)
                : space.scan(contents)));
    }

    private MarshallableEntry<K, V> entry(Object key, StoredEntry stored) {
        return stored.toEntry(key, factory, context.getByteBufferFactory());
    }

    private long now() {
        return context.getTimeService().wallClockTime();
    }

    private byte[] marshalled(Object key) {
        try {
            return StoredEntry.bytes(marshaller.objectToBuffer(key));
        } catch (IOException failure) {
            throw new PersistenceException("cannot marshal the key " + key, failure);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new PersistenceException("interrupted while a key was marshalled", interrupted);
        }
    }

    @SuppressWarnings("unchecked")
    private K unmarshalled(byte[] key) {
        try {
            return (K) marshaller.objectFromByteBuffer(key);
        } catch (IOException | ClassNotFoundException failure) {
            throw new PersistenceException("cannot unmarshal a key of " + key.length
                    + " bytes", failure);
        }
    }
}
