package io.entresol.infinispan;

import io.entresol.Entries;
import io.entresol.Store;
import io.entresol.infinispan.recovery.Arrivals;
import io.entresol.infinispan.recovery.OwnedSegments;
import io.entresol.infinispan.recovery.Recovery;
import io.entresol.infinispan.recovery.RecoveryOptions;
import io.entresol.infinispan.recovery.Withdrawal;
import io.entresol.infinispan.recovery.WithdrawalMark;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.function.IntFunction;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.util.logging.Log;
import org.infinispan.util.logging.LogFactory;

/**
 * The store of a cache on this node while nobody has it open: it can be opened or removed. Opening
 * decides whether the entries that it has still count.
 */
final class ClosedStore<K, V> {
    private static final Log LOG = LogFactory.getLog(ClosedStore.class);

    private final InitializationContext context;
    private final EntresolStoreConfiguration configuration;
    private final StorePlace place;
    private final WithdrawalMark mark;

    ClosedStore(InitializationContext context) {
        String cache = context.getCache().getName();
        this.context = context;
        this.configuration = context.getConfiguration();
        this.place = new StorePlace(context.getGlobalConfiguration(), cache, configuration);
        this.mark = WithdrawalMark.of(context.getGlobalConfiguration(), cache,
                place.ownFile().orElse(null));
    }

    InitializationContext context() {
        return context;
    }

    /**
     * Opens the store, or makes it. Infinispan joins the cluster after the store has started, so
     * the opening may wait for other nodes.
     */
    OpenStore<K, V> open() {
        boolean shared = context.getCache().getCacheConfiguration().clustering().cacheMode()
                .needsStateTransfer();
        Optional<RecoveryOptions> recovering = shared ? configuration.recovery() : Optional.empty();
        recovering.ifPresent(options -> RecoveryOptions.check(context, configuration,
                configuration.get(EntresolStoreConfiguration.DURABILITY)));
        UndeployedDevices undeployed = UndeployedDevices.of(context.getGlobalConfiguration());
        // Before a new store is made where the former one was.
        undeployed.sweepGone();
        if (mark.read().isPresent()) {
            place.listed().forEach(UndeployedDevices::sweepIfGone);
        }
        Store store = place.open(context.getNonBlockingExecutor());
        Deque<Runnable> begun = new ArrayDeque<>();
        begun.push(store::close);
        try {
            OwnedSegments segments = recovering.isPresent() ? recover(store, recovering.get())
                    : shared ? beginAnew(store) : new ReleasedSegments(entries(store));
            begun.push(segments::close);
            DeviceFiles files = place.files();
            // Who recovers tells by the lineage of the entries whether they count.
            if (recovering.isEmpty() && undeployed.hasAny(files.paths())) {
                forget(store, "they are of a cache that was undeployed");
            }
            undeployed.strike(files.paths());
            StoredSegments.check(context, place, store, store.space(OpenStore.OWN_SPACE));
            Optional<Withdrawal> withdrawal = !shared ? Optional.empty() : Optional.of(
                    Withdrawal.ready(context, files.toString(), mark, store::statistics));
            withdrawal.ifPresent(ready -> begun.push(ready::close));
            return new OpenStore<>(context, place, store, segments, withdrawal);
        } catch (RuntimeException failure) {
            begun.forEach(Runnable::run);
            throw failure;
        }
    }

    /** Removes the cache's file; devices that were named stay as they are. */
    void remove() {
        try {
            if (place.ownFile().isPresent()) {
                Files.deleteIfExists(place.ownFile().get());
            }
            mark.remove();
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot remove " + place, failure);
        }
    }

    private OwnedSegments recover(Store store, RecoveryOptions options) {
        Optional<String> withdrew = mark.read();
        Recovery recovery = Recovery.begin(context, options, store.space(OpenStore.OWN_SPACE),
                withdrew.isPresent() ? Recovery.Worth.WORTHLESS : Recovery.Worth.AS_SAID);
        try {
            if (!recovery.keepsEntries()) {
                forget(store, withdrew.orElse("the cluster went on without it"));
            }
            return recovery.arrivals(entries(store));
        } catch (RuntimeException failure) {
            recovery.close();
            throw failure;
        }
    }

    /**
     * Without recovery old entries are taken as they are, as Infinispan has it, unless this node
     * withdrew. A store that begins empty can tell what comes from what users wrote meanwhile.
     */
    private OwnedSegments beginAnew(Store store) {
        mark.read().ifPresent(why -> forget(store, why));
        var cache = context.getCache().getCacheConfiguration();
        boolean each = configuration.segmented() && !configuration.async().enabled()
                && !configuration.ignoreModifications()
                && !cache.persistence().passivation()
                && !cache.transaction().transactionMode().isTransactional();
        return each && store.count() == 0
                ? Arrivals.into(context.getCache().getAdvancedCache(), entries(store),
                        Arrivals.Kept.NOTHING)
                : new ReleasedSegments(entries(store));
    }

    /** Drops entries that do not count any more, before the node takes part in the cache. */
    private void forget(Store store, String why) {
        if (store.count() > 0) {
            LOG.infof("Cache %s: the entries of this node's store are dropped: %s",
                    context.getCache().getName(), why);
        }
        store.clear();
        mark.remove();
    }

    private IntFunction<Entries> entries(Store store) {
        return OpenStore.entries(store, configuration);
    }
}
