package io.entresol.jdbc;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.disposables.Disposable;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
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

/**
 * Makes an index in memory anew: one reader goes through the store in the order of the device, as
 * many threads as there are processors index what it reads. Nobody uses the cache meanwhile,
 * because it has not started.
 */
final class IndexRebuild {
    private static final Logger LOG = Logger.getLogger(IndexRebuild.class.getPackageName());
    /** Entries that a thread takes at a time. */
    private static final int BATCH = 256;
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
    private long started;
    private long told;

    IndexRebuild(AdvancedCache<?, ?> cache, SearchMapping mapping, IndexState state) {
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
    void run() {
        started = System.nanoTime();
        told = started;
        state.begin(CompletionStages.join(stores.approximateSize(AccessMode.BOTH,
                IntSets.immutableRangeSet(segments()))));
        int threads = Runtime.getRuntime().availableProcessors();
        ExecutorService workers = Executors.newFixedThreadPool(threads);
        Iterator<MarshallableEntry<Object, Object>> entries = entries();
        try {
            Collection<Class<?>> types = List.copyOf(mapping.allIndexedEntityJavaClasses());
            List<CompletableFuture<Void>> all = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                all.add(CompletableFuture.runAsync(() -> work(entries, types), workers));
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
            ((Disposable) entries).dispose();
        }
    }

    /** What the store has, read a little ahead. */
    private Iterator<MarshallableEntry<Object, Object>> entries() {
        return Flowable.fromPublisher(stores.<Object, Object>publishEntries(true, true))
                .blockingIterable(BATCH).iterator();
    }

    private int segments() {
        return cache.getCacheConfiguration().clustering().hash().numSegments();
    }

    private void work(Iterator<MarshallableEntry<Object, Object>> entries,
            Collection<Class<?>> types) {
        for (List<MarshallableEntry<Object, Object>> batch = take(entries); !batch.isEmpty();
                batch = take(entries)) {
            List<CompletableFuture<?>> added = new ArrayList<>();
            for (MarshallableEntry<Object, Object> entry : batch) {
                Object value = values.extractIndexable(entry.getValue(), false);
                if (value != null && mapping.typeIsIndexed(value, types)) {
                    int segment = partitioner.getSegment(entry.getKey());
                    added.add(mapping.getSearchIndexer()
                            .add(keys.extractIndexable(entry.getKey(), false),
                                    String.valueOf(segment), value));
                }
            }
            CompletableFuture.allOf(added.toArray(CompletableFuture[]::new)).join();
            progress(state.add(batch.size()));
        }
    }

    private static List<MarshallableEntry<Object, Object>> take(
            Iterator<MarshallableEntry<Object, Object>> entries) {
        List<MarshallableEntry<Object, Object>> batch = new ArrayList<>(BATCH);
        synchronized (entries) {
            while (batch.size() < BATCH && entries.hasNext()) {
                batch.add(entries.next());
            }
        }
        return batch;
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
