package io.entresol.infinispan.recovery;

import io.entresol.infinispan.EntresolStoreConfiguration;
import io.entresol.infinispan.Privileged;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.StoreConfiguration;
import org.infinispan.context.Flag;
import org.infinispan.distribution.LocalizedCacheTopology;
import org.infinispan.distribution.ch.ConsistentHash;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.partitionhandling.AvailabilityMode;
import org.infinispan.registry.InternalCacheRegistry;
import org.infinispan.remoting.transport.Address;

/**
 * A node that was told to stop: it serves until its leaving loses nothing. Infinispan itself lets a
 * node go before the others have made new copies of the entries of the previous one, and the only
 * copy of an entry goes with it.
 *
 * <pre>
 * SERVES ──told──► WANTS ──others have all──► GOES ──nobody else does──► gone
 *                   │ ▲                        │
 *                   ▼ └───────somebody does────┘
 *                HINDERED, looks again
 * </pre>
 *
 * <p>If all nodes of the view were told to stop, none of them leaves: they stop as a cluster, so
 * that all have their entries when they come back. {@link LeaveTurn} chooses.
 */
public final class Leaving {
    /** So long others may be told after this node, and are told at the same time all the same. */
    private static final long TOGETHER_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final Map<GlobalComponentRegistry, Leaving> TOLD =
            Collections.synchronizedMap(new WeakHashMap<>());

    private final EmbeddedCacheManager manager;
    private final Peers peers;
    private final long begun = System.nanoTime();
    private volatile Intent intent = Intent.WANTS;

    /** What a node is about to do. One that does not say may be gone at any moment. */
    enum Intent { SERVES, WANTS, HINDERED, GOES, SILENT }

    /** What a node that was told to stop has to do. */
    public enum Step {
        /** Leave: the others have all that it has. */
        LEAVE,
        /** Stop the whole cluster: all of its nodes were told. */
        STOP_CLUSTER,
        /** Look again: others may be told in the same moments. */
        PAUSE,
        /** Serve for now, and look again. */
        WAIT,
        /** Serve: what it has nobody else will have. */
        STAY
    }

    /**
     * What was found.
     *
     * @param step what is to be done
     * @param why a sentence, if that is not to leave
     */
    public record Verdict(Step step, String why) {
    }

    private Leaving(EmbeddedCacheManager manager) {
        this.manager = manager;
        this.peers = new Peers(manager);
    }

    /** From here on the other nodes hear that this one was told to stop. */
    public static Leaving begin(EmbeddedCacheManager manager) {
        Leaving leaving = new Leaving(manager);
        TOLD.put(Privileged.getRegistry(manager), leaving);
        return leaving;
    }

    /** Whether a node goes, so that nobody may rely on what it has. */
    static boolean goes(GlobalComponentRegistry container) {
        Leaving leaving = TOLD.get(container);
        return leaving != null && leaving.intent == Intent.GOES;
    }

    /** Looks whether the node may leave now. Once it may, the others let it go alone. */
    public Verdict look() {
        if (manager.getMembers() == null || manager.getMembers().size() < 2) {
            return new Verdict(Step.LEAVE, "");
        }
        intent = Intent.WANTS;
        Verdict first = turn().choose();
        boolean early = System.nanoTime() - begun < TOGETHER_NANOS;
        if (first.step() != Step.LEAVE || early) {
            if (first.step() == Step.STAY || first.step() == Step.WAIT && !early) {
                intent = Intent.HINDERED;
            }
            return first.step() != Step.LEAVE ? first
                    : new Verdict(Step.PAUSE, "");
        }
        // Whoever hears this does not go; who went before this was said is heard now.
        intent = Intent.GOES;
        Verdict second = turn().choose();
        if (second.step() != Step.LEAVE) {
            intent = Intent.WANTS;
        }
        return second;
    }

    private LeaveTurn<Address> turn() {
        Map<Address, LeaveTurn.Said> said = new LinkedHashMap<>();
        peers.ask(saying()).toCompletableFuture().join().forEach((node, text) ->
                said.put(node, LeaveTurn.Said.parse(text)));
        return new LeaveTurn<>(manager.getAddress(), said, shares());
    }

    private List<LeaveTurn.Share<Address>> shares() {
        List<LeaveTurn.Share<Address>> shares = new ArrayList<>();
        for (String name : names(manager)) {
            Cache<?, ?> cache = manager.isRunning(name) ? manager.getCache(name, false) : null;
            if (cache == null) {
                continue;
            }
            AdvancedCache<?, ?> there = Privileged.getUnwrappedCache(cache);
            Configuration configuration = there.getCacheConfiguration();
            if (there.getDistributionManager() != null && counts(there, configuration)) {
                shares.add(share(name, there, configuration));
            }
        }
        return shares;
    }

    /**
     * Not of caches whose entries go with their node, as they are configured, nor of those whose
     * stores are put together again: one that lacks members has its entries once all are back.
     */
    private static boolean counts(AdvancedCache<?, ?> cache, Configuration configuration) {
        boolean clustered = configuration.clustering().cacheMode().isDistributed()
                || configuration.clustering().cacheMode().isReplicated();
        List<StoreConfiguration> stores = configuration.persistence().stores();
        boolean kept = !stores.isEmpty() && stores.stream().noneMatch(StoreConfiguration::shared);
        boolean recovers = stores.stream().anyMatch(store ->
                store instanceof EntresolStoreConfiguration ours && ours.recovers());
        return clustered && (kept || isCopied(configuration)) && !(recovers && isIncomplete(cache));
    }

    /** Nobody else serves it, or nobody does. */
    private static boolean isIncomplete(AdvancedCache<?, ?> cache) {
        return cache.getAvailability() == AvailabilityMode.DEGRADED_MODE
                || cache.getDistributionManager().getCacheTopology().getMembers().size() < 2;
    }

    private static boolean isCopied(Configuration configuration) {
        return configuration.clustering().cacheMode().isReplicated()
                || configuration.clustering().hash().numOwners() > 1;
    }

    private static LeaveTurn.Share<Address> share(String name, AdvancedCache<?, ?> cache,
            Configuration configuration) {
        List<List<Address>> owners = new ArrayList<>();
        LocalizedCacheTopology topology = cache.getDistributionManager().getCacheTopology();
        ConsistentHash hash = topology.getReadConsistentHash();
        for (int segment = 0; segment < hash.getNumSegments(); segment++) {
            owners.add(hash.locateOwnersForSegment(segment));
        }
        boolean copied = isCopied(configuration);
        long entries = copied ? -1 : cache.withFlags(Flag.CACHE_MODE_LOCAL).size();
        return new LeaveTurn.Share<>(name, owners, copied, entries);
    }

    private static Set<String> names(EmbeddedCacheManager manager) {
        Set<String> names = new HashSet<>(manager.getCacheNames());
        names.addAll(Privileged.getComponent(manager, InternalCacheRegistry.class)
                .getInternalCacheNames());
        return names;
    }

    /** Runs on the node that is asked. */
    private static Function<EmbeddedCacheManager, String> saying() {
        return (Function<EmbeddedCacheManager, String> & Serializable) asked -> {
            Leaving leaving = TOLD.get(Privileged.getRegistry(asked));
            Set<String> sound = new HashSet<>();
            for (String name : names(asked)) {
                if (asked.isRunning(name) && Withdrawal.isSound(asked, name)) {
                    sound.add(name);
                }
            }
            return new LeaveTurn.Said(leaving == null ? Intent.SERVES : leaving.intent, sound)
                    .toString();
        };
    }
}
