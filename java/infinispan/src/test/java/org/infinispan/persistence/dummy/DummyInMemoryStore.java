package org.infinispan.persistence.dummy;

import io.entresol.infinispan.EntresolStore;
import io.reactivex.rxjava3.core.Flowable;
import java.lang.reflect.Method;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.infinispan.Cache;
import org.infinispan.commons.IllegalLifecycleStateException;
import org.infinispan.commons.test.TestResourceTracker;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
import org.infinispan.distribution.ch.KeyPartitioner;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.infinispan.persistence.spi.PersistenceException;
import org.infinispan.persistence.support.WaitNonBlockingStore;
import org.reactivestreams.Publisher;

/**
 * Makes most of Infinispan's own tests of caches with stores run on {@code EntresolStore}. They
 * name Infinispan's store in memory, and this class of the same name stands before that one. It
 * counts calls as the original does, and hands them to a store on a file.
 *
 * <p>As in the original, stores of one name are one store: its file outlives caches, until the test
 * has ended.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
public class DummyInMemoryStore<K, V> implements WaitNonBlockingStore<K, V> {
    private static final Map<String, FlashInstead> NAMED = new ConcurrentHashMap<>();

    private final AtomicInteger starts = new AtomicInteger();
    private DummyInMemoryStoreConfiguration configuration;
    private KeyPartitioner keyPartitioner;
    private String storeName;
    private FlashInstead flash;
    private IntSet allSegments;
    private volatile boolean running;
    private volatile boolean available;
    private volatile boolean exceptionOnAvailabilityCheck;

    public DummyInMemoryStore() {
    }

    public DummyInMemoryStore(String storeName) {
        this.storeName = storeName;
    }

    @Override
    public CompletionStage<Void> start(InitializationContext context) {
        configuration = context.getConfiguration();
        keyPartitioner = context.getKeyPartitioner();
        Cache<?, ?> cache = context.getCache();
        String name = configuration.storeName();
        storeName = name == null || cache == null ? name : name + "_" + cache.getName();
        if (running) {
            return CompletableFuture.completedFuture(null);
        }
        if (configuration.startFailures() > starts.incrementAndGet()) {
            throw new PersistenceException();
        }
        allSegments = IntSets.immutableRangeSet(configuration.segmented()
                ? cache.getCacheConfiguration().clustering().hash().numSegments() : 1);
        flash = storeName == null ? new FlashInstead(UUID.randomUUID().toString())
                : NAMED.computeIfAbsent(storeName, DummyInMemoryStore::named);
        return flash.start(context, configuration.segmented(), allSegments).thenRun(() -> {
            record("start");
            running = true;
            available = true;
        });
    }

    private static FlashInstead named(String name) {
        TestResourceTracker.addResource(new TestResourceTracker.Cleaner<>(name) {
            @Override
            public void close() {
                removeStoreData(ref);
            }
        });
        return new FlashInstead(UUID.randomUUID().toString());
    }

    @Override
    public CompletionStage<Void> stop() {
        if (!running) {
            return CompletableFuture.completedFuture(null);
        }
        record("stop");
        running = false;
        available = false;
        return flash.stop(storeName == null);
    }

    @Override
    public Set<Characteristic> characteristics() {
        Set<Characteristic> all = EnumSet.copyOf(new EntresolStore<>().characteristics());
        all.add(Characteristic.SHAREABLE);
        return all;
    }

    @Override
    public KeyPartitioner getKeyPartitioner() {
        return keyPartitioner;
    }

    @Override
    public CompletionStage<Void> write(int segment, MarshallableEntry entry) {
        return called("write").write(segment, entry);
    }

    @Override
    public CompletionStage<Boolean> delete(int segment, Object key) {
        return called("delete").delete(segment, key);
    }

    @Override
    public CompletionStage<MarshallableEntry<K, V>> load(int segment, Object key) {
        return called("load").load(segment, key);
    }

    @Override
    public CompletionStage<Boolean> containsKey(int segment, Object key) {
        return called("containsKey").containsKey(segment, key);
    }

    @Override
    public CompletionStage<Void> clear() {
        return called("clear").clear();
    }

    @Override
    public CompletionStage<Long> size(IntSet segments) {
        return called("size").size(segments);
    }

    @Override
    public CompletionStage<Long> approximateSize(IntSet segments) {
        return called("size").approximateSize(segments);
    }

    @Override
    public Flowable<MarshallableEntry> publishEntries(IntSet segments, Predicate filter,
            boolean fetchValue) {
        return (Flowable) Flowable.fromPublisher(
                called("publishEntries").publishEntries(segments, filter, fetchValue));
    }

    @Override
    public Publisher<MarshallableEntry<K, V>> purgeExpired() {
        return called("purgeExpired").purgeExpired();
    }

    @Override
    public CompletionStage<Void> addSegments(IntSet segments) {
        EntresolStore store = called("addSegments");
        return storeName == null ? store.addSegments(segments)
                : CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletionStage<Void> removeSegments(IntSet segments) {
        EntresolStore store = called("removeSegments");
        return storeName == null ? store.removeSegments(segments)
                : CompletableFuture.completedFuture(null);
    }

    @Override
    public boolean ignoreCommandWithFlags(long flags) {
        return flash.store().ignoreCommandWithFlags(flags);
    }

    @Override
    public CompletionStage<Boolean> isAvailable() {
        if (exceptionOnAvailabilityCheck) {
            throw new RuntimeException();
        }
        return CompletableFuture.completedFuture(available);
    }

    public void setExceptionOnAvailbilityCheck(boolean throwException) {
        exceptionOnAvailabilityCheck = throwException;
    }

    public void setAvailable(boolean now) {
        available = now;
    }

    public boolean isRunning() {
        return running;
    }

    public int getInitCount() {
        return starts.get();
    }

    public String getStoreName() {
        return storeName;
    }

    public DummyInMemoryStoreConfiguration getConfiguration() {
        return configuration;
    }

    public static void removeStoreData(String name) {
        FlashInstead removed = NAMED.remove(name);
        if (removed != null) {
            removed.remove();
        }
    }

    public static long getStoreDataSize(String name) {
        FlashInstead found = NAMED.get(name);
        return found == null ? 0 : found.entries();
    }

    public long getStoreDataSize() {
        return flash.entries();
    }

    public long size() {
        return join((CompletionStage<Long>) flash.store().size(allSegments));
    }

    public boolean isEmpty() {
        return getStoreDataSize() == 0;
    }

    public Set<Object> keySet() {
        Publisher<Object> keys = flash.store().publishKeys(allSegments, null);
        List<Object> all = join(Flowable.fromPublisher(keys).toList().toCompletionStage());
        return new HashSet<>(all);
    }

    public Map<String, Integer> stats() {
        Map<String, Integer> copy = new HashMap<>();
        for (Method method : NonBlockingStore.class.getMethods()) {
            copy.put(method.getName(), flash.counted(method.getName()).get());
        }
        return copy;
    }

    public void clearStats() {
        flash.clearCounted();
    }

    private void record(String method) {
        flash.counted(method).incrementAndGet();
    }

    /** The store, for a method that is counted. */
    private EntresolStore called(String method) {
        if (!running) {
            throw new IllegalLifecycleStateException();
        }
        if (!available) {
            throw new PersistenceException();
        }
        record(method);
        return flash.store();
    }
}
