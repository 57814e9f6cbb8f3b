package io.entresol.infinispan;

import io.entresol.StoreStatistics;
import io.reactivex.rxjava3.core.Flowable;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongConsumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.infinispan.commons.ThreadGroups;
import org.infinispan.commons.configuration.ConfiguredBy;
import org.infinispan.commons.util.IntSet;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.infinispan.persistence.spi.PersistenceException;
import org.reactivestreams.Publisher;

/**
 * A cache's entries on flash: a segment of the cache is a partition of the store. A method waits
 * for the device only in a thread that waits anyway; entries in memory are answered at once.
 *
 * <p>Expired entries stay on flash until {@link #purgeExpired} has reported them, and nobody gets
 * them meanwhile. A cache that never held an entry with an end is counted without reading any
 * entry.
 *
 * <pre>
 * new ──start──► open ──stop, destroy──► closed ──start──► open
 * </pre>
 */
@ConfiguredBy(EntresolStoreConfiguration.class)
public class EntresolStore<K, V> implements NonBlockingStore<K, V> {
    /** How long others wait for the close of a store that failed: its device may never answer. */
    private static final long CLOSING_SECONDS = 10;

    /** What is opened; null before the first start. */
    private ClosedStore<K, V> closed;
    /** Null unless the store is open. */
    private final AtomicReference<OpenStore<K, V>> open = new AtomicReference<>();

    /** Null: nobody is told. */
    private volatile StoreLatencies latencies;

    @Override
    public CompletionStage<Void> start(InitializationContext given) {
        ClosedStore<K, V> opening = new ClosedStore<>(given);
        closed = opening;
        return given.getBlockingManager().runBlocking(() -> {
            OpenStore<K, V> opened = opening.open();
            open.set(opened);
            OpenStores.add(this, opened);
        }, "entresol-start");
    }

    /** A store that failed is given some time to close, in a thread of its own. */
    @Override
    public CompletionStage<Void> stop() {
        InitializationContext context = closed.context();
        OpenStore<K, V> known = open.get();
        if (known == null || !known.health().hasFailed()) {
            return context.getBlockingManager().runBlocking(this::close, "entresol-stop");
        }
        CompletableFuture<Void> ended = new CompletableFuture<>();
        // It may wait, whatever the thread may do that stops the cache.
        Thread closing = new Thread(ThreadGroups.BLOCKING_GROUP, () -> {
            close();
            ended.complete(null);
        }, "entresol closes " + context.getCache().getName());
        closing.setDaemon(true);
        closing.start();
        return ended.completeOnTimeout(null, CLOSING_SECONDS, TimeUnit.SECONDS);
    }

    /** Removes the cache's file as well; devices that were named stay as they are. */
    @Override
    public CompletionStage<Void> destroy() {
        return closed.context().getBlockingManager().runBlocking(() -> {
            close();
            closed.remove();
        }, "entresol-destroy");
    }

    private void close() {
        OpenStore<K, V> closing = open.getAndSet(null);
        OpenStores.remove(this);
        if (closing != null) {
            closing.close();
        }
    }

    @Override
    public Set<Characteristic> characteristics() {
        return EnumSet.of(
                Characteristic.SEGMENTABLE, Characteristic.BULK_READ, Characteristic.EXPIRATION);
    }

    @Override
    public CompletionStage<Boolean> isAvailable() {
        OpenStore<K, V> known = open.get();
        return known == null ? CompletableFuture.completedFuture(false) : known.isAvailable();
    }

    /** Figures of the flash store since it was opened; none while it is stopped. */
    public Optional<StoreStatistics> statistics() {
        return Optional.ofNullable(open.get()).map(OpenStore::statistics);
    }

    /** Why the store does not do all that it should; empty if it does, or is stopped. */
    public Optional<StoreTrouble> trouble() {
        return Optional.ofNullable(open.get()).flatMap(known -> known.health().trouble());
    }

    /** The files or devices that it is on; none while it is stopped. */
    public List<Path> devices() {
        OpenStore<K, V> known = open.get();
        return known == null ? List.of() : known.health().devices();
    }

    /**
     * A map of its segments in about so many groups, as {@link io.entresol.Store#segments} gives
     * it; none while it is stopped or waits for its device.
     */
    public Optional<String> segments(int groups) {
        return Optional.ofNullable(open.get()).flatMap(known -> known.segments(groups));
    }

    /** From now on tells how long each call takes that reads, writes or removes one entry. */
    public void tell(StoreLatencies told) {
        latencies = told;
    }

    private <T> CompletionStage<T> reading(Supplier<CompletionStage<T>> call) {
        StoreLatencies told = latencies;
        return told == null ? call.get() : timed(call, told::read);
    }

    private <T> CompletionStage<T> writing(Supplier<CompletionStage<T>> call) {
        StoreLatencies told = latencies;
        return told == null ? call.get() : timed(call, told::write);
    }

    private static <T> CompletionStage<T> timed(Supplier<CompletionStage<T>> call,
            LongConsumer told) {
        long begun = System.nanoTime();
        return call.get().whenComplete((done, failure) -> told.accept(System.nanoTime() - begun));
    }

    @Override
    public CompletionStage<MarshallableEntry<K, V>> load(int segment, Object key) {
        return reading(() -> opened().load(segment, key));
    }

    @Override
    public CompletionStage<Boolean> containsKey(int segment, Object key) {
        return reading(() -> opened().containsKey(segment, key));
    }

    @Override
    public CompletionStage<Void> write(int segment, MarshallableEntry<? extends K, ? extends V> e) {
        return writing(() -> opened().write(segment, e));
    }

    @Override
    public boolean ignoreCommandWithFlags(long flags) {
        OpenStore<K, V> known = open.get();
        if (known != null) {
            known.expect(flags);
        }
        return false;
    }

    @Override
    public CompletionStage<Boolean> delete(int segment, Object key) {
        return writing(() -> opened().delete(segment, key));
    }

    @Override
    public CompletionStage<Void> clear() {
        return opened().clear();
    }

    @Override
    public CompletionStage<Void> addSegments(IntSet segments) {
        return opened().addSegments(segments);
    }

    @Override
    public CompletionStage<Void> removeSegments(IntSet segments) {
        return opened().removeSegments(segments);
    }

    @Override
    public CompletionStage<Long> size(IntSet segments) {
        return opened().size(segments);
    }

    @Override
    public CompletionStage<Long> approximateSize(IntSet segments) {
        return opened().approximateSize(segments);
    }

    @Override
    public Publisher<MarshallableEntry<K, V>> publishEntries(IntSet segments,
            Predicate<? super K> filter, boolean includeValues) {
        return opened().publishEntries(segments, filter);
    }

    @Override
    public Publisher<K> publishKeys(IntSet segments, Predicate<? super K> filter) {
        return opened().publishKeys(segments, filter);
    }

    @Override
    public Publisher<MarshallableEntry<K, V>> purgeExpired() {
        return Flowable.defer(() -> opened().purgeExpired());
    }

    /** What Infinispan calls the store where it is not available. */
    @Override
    public String toString() {
        OpenStore<K, V> known = open.get();
        return known == null ? "entresol-store" : known.toString();
    }

    /** What everything is asked that needs an open store. */
    OpenStore<K, V> opened() {
        OpenStore<K, V> known = open.get();
        if (known == null) {
            throw new PersistenceException(closed == null ? "a store was not started"
                    : "the store of cache " + closed.context().getCache().getName()
                            + " is stopped; start it first");
        }
        return known;
    }
}
