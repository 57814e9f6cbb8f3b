package io.entresol.jdbc.internal.index;

import io.entresol.infinispan.EntresolStore;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.disposables.Disposable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.infinispan.AdvancedCache;
import org.infinispan.commons.util.IntSets;
import org.infinispan.commons.util.concurrent.CompletionStages;
import org.infinispan.distribution.ch.KeyPartitioner;
import org.infinispan.encoding.DataConversion;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.persistence.manager.PersistenceManager;
import org.infinispan.persistence.manager.PersistenceManager.AccessMode;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.query.mapper.mapping.SearchMapping;
import org.jboss.logging.Logger;
import org.reactivestreams.Publisher;

/**
 * Makes an index in memory anew: one reader goes through the store in the order of the device, as
 * many threads as there are processors index what it reads. Nobody uses the cache meanwhile,
 * because it has not started.
 *
 * <p>Entries go from thread to thread in batches, never one by one: a handover costs more than the
 * indexing of an entry.
 */
public final class IndexRebuild {
    private static final Logger LOG = Logger.getLogger(IndexRebuild.class.getPackageName());
    /** Entries that a thread takes at a time. */
    public static final int BATCH = 256;
    /** Batches that are read before a thread wants them. */
    private static final int AHEAD = 4;
    private static final long NANOS = 1_000_000_000L;
    /** Seconds between two lines of progress. */
    private static final long PERIOD = 2;

    private final String name;
    private final AdvancedCache<?, ?> cache;
    private final PersistenceManager stores;
    private final SearchMapping mapping;
    private final IndexState state;
    private final DataConversion keys;
    private final DataConversion values;
    private final KeyPartitioner partitioner;
    private IndexAdditions additions;
    private long started;
    private long told;

    public IndexRebuild(AdvancedCache<?, ?> cache, SearchMapping mapping, IndexState state) {
        this.name = cache.getName();
        this.cache = cache;
        this.stores = ComponentRegistry.componentOf(cache, PersistenceManager.class);
        this.keys = cache.getKeyDataConversion();
        this.values = cache.getValueDataConversion();
        this.mapping = mapping;
        this.state = state;
        this.partitioner = ComponentRegistry.componentOf(cache, KeyPartitioner.class);
    }

    /** Returns when the index has every entry. */
    public void run() {
        started = System.nanoTime();
        told = started;
        state.begin(CompletionStages.join(stores.approximateSize(AccessMode.BOTH,
                IntSets.immutableRangeSet(segments()))));
        int threads = Runtime.getRuntime().availableProcessors();
        ExecutorService workers = Executors.newFixedThreadPool(threads);
        Iterator<List<MarshallableEntry<Object, Object>>> batches = batches();
        try {
            additions = new IndexAdditions(mapping, cache);
            List<CompletableFuture<Void>> all = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                all.add(CompletableFuture.runAsync(() -> work(batches), workers));
            }
            CompletableFuture.allOf(all.toArray(CompletableFuture[]::new)).join();
            mapping.scopeAll().workspace().refresh();
            state.complete();
            tell("the index of cache %s is complete: %d entries in %.1f s, %.0f/s",
                    state.add(0));
        } catch (RuntimeException failure) {
            state.fail(failure);
            LOG.errorf(failure, "the index of cache %s could not be rebuilt; queries are refused",
                    name);
            if (cache.getCacheConfiguration().clustering().cacheMode().isClustered()) {
                // Other nodes would ask this one, and take what it has for all.
                throw failure;
            }
        } finally {
            workers.shutdownNow();
            ((Disposable) batches).dispose();
        }
    }

    /** What the store has, read a little ahead. */
    private Iterator<List<MarshallableEntry<Object, Object>>> batches() {
        return Flowable.fromPublisher(stored()).buffer(BATCH).blockingIterable(AHEAD).iterator();
    }

    /**
     * Returns the store's own entries. Infinispan's publisher fails where an entry comes too long
     * after another, even if it waits for whoever indexes, as on a busy machine.
     */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private Publisher<MarshallableEntry<Object, Object>> stored() {
        Set<EntresolStore> own = stores.getStores(EntresolStore.class);
        boolean others = cache.getCacheConfiguration().persistence().stores().size() > 1;
        return own.size() != 1 || others ? stores.publishEntries(true, true)
                : own.iterator().next().publishEntries(
                        IntSets.immutableRangeSet(segments()), null, true);
    }

    private int segments() {
        return cache.getCacheConfiguration().clustering().hash().numSegments();
    }

    /** While a batch is written the thread makes documents of the next. */
    private void work(Iterator<List<MarshallableEntry<Object, Object>>> batches) {
        CompletableFuture<?> written = CompletableFuture.completedFuture(null);
        for (List<MarshallableEntry<Object, Object>> batch = take(batches); !batch.isEmpty();
                batch = take(batches)) {
            List<CompletableFuture<?>> added = new ArrayList<>(batch.size());
            for (MarshallableEntry<Object, Object> entry : batch) {
                Object value = values.extractIndexable(entry.getValue(), false);
                if (value != null) {
                    added.add(additions.add(keys.extractIndexable(entry.getKey(), false), value,
                            partitioner.getSegment(entry.getKey())));
                }
            }
            written.join();
            written = CompletableFuture.allOf(added.toArray(CompletableFuture[]::new));
            progress(state.add(batch.size()));
        }
        written.join();
    }

    private static List<MarshallableEntry<Object, Object>> take(
            Iterator<List<MarshallableEntry<Object, Object>>> batches) {
        synchronized (batches) {
            return batches.hasNext() ? batches.next() : List.of();
        }
    }

    private synchronized void progress(long done) {
        if (System.nanoTime() - told >= PERIOD * NANOS) {
            told = System.nanoTime();
            tell("the index of cache %s is being rebuilt: %d of " + state.total()
                    + " entries in %.1f s, %.0f/s", done);
        }
    }

    private void tell(String text, long done) {
        double seconds = Math.max(1, System.nanoTime() - started) / (double) NANOS;
        LOG.info(String.format(Locale.ROOT, text, name, done, seconds, done / seconds));
    }
}
