package io.entresol.infinispan.recovery;

import io.entresol.StoreStatistics;
import io.entresol.infinispan.Privileged;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
import org.infinispan.AdvancedCache;
import org.infinispan.distribution.LocalizedCacheTopology;
import org.infinispan.distribution.ch.ConsistentHash;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.lifecycle.ComponentStatus;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.partitionhandling.AvailabilityMode;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.remoting.transport.Address;
import org.infinispan.util.logging.Log;
import org.infinispan.util.logging.LogFactory;

/**
 * Takes this node out of a clustered cache once its store fails, if other nodes have all its
 * entries. The cache stops here, and the others make new copies from theirs. Until the node has
 * left, Infinispan tries failed operations again in the next topology, in which the others own
 * everything.
 *
 * <pre>
 * SOUND ──fails──► ASKING ──others have all──► LEAVING ──► stopped
 *   ▲                │ ▲
 *   └──has room──┐   ▼ └──look, topology
 *               STAYING
 * </pre>
 */
public final class Withdrawal implements AutoCloseable {
    private static final Log LOG = LogFactory.getLog(Withdrawal.class);
    private static final Started<Withdrawal> STARTED = new Started<>();
    /** Why nodes withdrew, by container and cache, until they start the cache again. */
    private static final Map<GlobalComponentRegistry, Map<String, String>> REASONS =
            Collections.synchronizedMap(new WeakHashMap<>());

    private final AdvancedCache<?, ?> cache;
    private final String name;
    private final String place;
    private final GlobalComponentRegistry container;
    private final Peers peers;
    private final Supplier<StoreStatistics> figures;
    private final WithdrawalMark mark;

    private State state = State.SOUND;
    private StoreFault fault;
    private CompletableFuture<Boolean> verdict;
    /** The topology that the last verdict is about. */
    private int judged;
    /** What its entries took when it was full last. */
    private long fullBytes;
    /** What was logged last. */
    private StoreFault.Kind told;

    private enum State { SOUND, ASKING, STAYING, LEAVING }

    private Withdrawal(InitializationContext context, String place, WithdrawalMark mark,
            Supplier<StoreStatistics> figures) {
        this.cache = context.getCache().getAdvancedCache();
        this.name = cache.getName();
        this.place = place;
        this.container = Privileged.getRegistry(cache.getCacheManager());
        this.peers = new Peers(cache.getCacheManager());
        this.mark = mark;
        this.figures = figures;
    }

    /** Stands ready for a store on {@code place} that is open. */
    public static Withdrawal ready(InitializationContext context, String place,
            WithdrawalMark mark, Supplier<StoreStatistics> figures) {
        Withdrawal ready = new Withdrawal(context, place, mark, figures);
        REASONS.computeIfPresent(ready.container, (same, reasons) -> {
            reasons.remove(ready.name);
            return reasons;
        });
        STARTED.add(ready.container, ready.name, ready);
        return ready;
    }

    /** Why a node withdrew from a cache; empty if it did not, or has started it again. */
    public static Optional<String> reason(EmbeddedCacheManager manager, String cache) {
        return Optional.ofNullable(REASONS.getOrDefault(
                Privileged.getRegistry(manager), Map.of()).get(cache));
    }

    /** Whether a node has what it owns of a cache that it runs, and takes what it is sent. */
    static boolean isSound(EmbeddedCacheManager manager, String cache) {
        return STARTED.find(manager, cache).map(Withdrawal::isSound).orElse(true);
    }

    private synchronized boolean isSound() {
        return state == State.SOUND;
    }

    /**
     * The store fails so: whether the node leaves for it, so that whoever met the failure had best
     * try again. Else it stays, and the failure is to be told.
     */
    public CompletionStage<Boolean> leaves(StoreFault found) {
        return decide(found, topology());
    }

    /** Looks again whether a node that had to stay may leave, or need not any more. */
    public void look() {
        StoreFault standing;
        synchronized (this) {
            standing = fault;
            if (state != State.STAYING) {
                return;
            }
            if (!fault.stays() && figures.get().liveBytes() < fullBytes) {
                state = State.SOUND;
                fault = null;
                told = null;
                return;
            }
        }
        decide(standing, -1);
    }

    /** Whether the others go on without this node, and with all that it owned. */
    public synchronized boolean isLeaving() {
        return state == State.LEAVING;
    }

    /** Answers nobody any more. */
    @Override
    public void close() {
        STARTED.remove(container, name, this);
    }

    private CompletionStage<Boolean> decide(StoreFault found, int topology) {
        CompletableFuture<Boolean> asked;
        synchronized (this) {
            fault = found.isWorseThan(fault) ? found : fault;
            fullBytes = found.stays() ? fullBytes : figures.get().liveBytes();
            boolean known = state == State.ASKING || state == State.LEAVING
                    || state == State.STAYING && judged == topology && found != fault;
            if (known) {
                return verdict;
            }
            // From here on others do not count on this node: see Departure.
            state = State.ASKING;
            asked = new CompletableFuture<>();
            verdict = asked;
            judged = topology();
        }
        try {
            peers.ask(question(name))
                    .thenApply(this::obstacle)
                    .exceptionally(failure -> Optional.of("the others could not be asked: "
                            + failure))
                    .thenAccept(this::settle);
        } catch (RuntimeException failure) {
            settle(Optional.of("the others could not be asked: " + failure));
        }
        return asked;
    }

    private Optional<String> obstacle(Map<Address, String> answers) {
        LocalizedCacheTopology topology = cache.getDistributionManager().getCacheTopology();
        if (cache.getStatus() != ComponentStatus.RUNNING || topology == null) {
            return Optional.of("it has not joined yet");
        }
        if (cache.getAvailability() != AvailabilityMode.AVAILABLE) {
            return Optional.of("the cache is degraded, and takes no leave");
        }
        ConsistentHash hash = topology.getReadConsistentHash();
        List<List<Address>> owners = new ArrayList<>();
        for (int segment = 0; segment < hash.getNumSegments(); segment++) {
            owners.add(hash.locateOwnersForSegment(segment));
        }
        Map<Address, StoreReport> stores = new LinkedHashMap<>();
        answers.forEach((node, text) -> {
            if (!text.isEmpty()) {
                stores.put(node, StoreReport.parse(text));
            }
        });
        return new Departure<>(cache.getRpcManager().getAddress(), owners, stores)
                .obstacle(fault());
    }

    private void settle(Optional<String> obstacle) {
        CompletableFuture<Boolean> asked;
        boolean news;
        StoreFault why;
        synchronized (this) {
            state = obstacle.isPresent() ? State.STAYING : State.LEAVING;
            asked = verdict;
            why = fault;
            news = obstacle.isPresent() && told != why.kind();
            told = why.kind();
        }
        if (news) {
            LOG.errorf("Cache %s: the store on %s fails: %s. This node stays, and says so to each"
                    + " operation that fails, for %s", name, place, why.what(), obstacle.get());
        }
        if (obstacle.isEmpty()) {
            // Not in a thread of Infinispan's: these are what stopping waits for.
            Thread leaving = new Thread(() -> leave(why), "entresol withdraws " + name);
            leaving.setDaemon(true);
            leaving.start();
        }
        asked.complete(obstacle.isEmpty());
    }

    private void leave(StoreFault why) {
        String reason = "the store on " + place + " fails: " + why.what();
        String remove = "";
        try {
            mark.make(reason);
        } catch (IOException | RuntimeException failure) {
            remove = " That its entries do not count any more could not be noted (" + failure
                    + "): remove them yourself before.";
        }
        LOG.errorf("Cache %s: this node stops owning its entries, and the others go on without it:"
                + " %s. %s, then start the cache here again, or this node: it joins as a new"
                + " one.%s", name, reason, why.kind() == StoreFault.Kind.FULL
                        ? "Give it more capacity (a new file or device)"
                        : "Replace the device or delete the file", remove);
        REASONS.computeIfAbsent(container, unknown -> new ConcurrentHashMap<>())
                .put(name, reason);
        try {
            cache.stop();
        } catch (RuntimeException failure) {
            LOG.errorf(failure, "Cache %s could not be stopped; stop this node", name);
        }
    }

    /** Runs on the node that is asked; it captures nothing but the cache's name. */
    private static Function<EmbeddedCacheManager, String> question(String cache) {
        return (Function<EmbeddedCacheManager, String> & Serializable) asked ->
                STARTED.find(asked, cache).map(there -> there.answer().toString()).orElse("");
    }

    private synchronized StoreReport answer() {
        boolean full = fault != null && !fault.stays();
        // A node that was told to stop says that it goes before it asks what the others have.
        return StoreReport.of(!Leaving.goes(container)
                && (state == State.SOUND || state == State.STAYING && full), figures.get());
    }

    private synchronized StoreFault fault() {
        return fault;
    }

    private int topology() {
        LocalizedCacheTopology topology = cache.getDistributionManager() == null ? null
                : cache.getDistributionManager().getCacheTopology();
        return topology == null ? -1 : topology.getTopologyId();
    }
}
