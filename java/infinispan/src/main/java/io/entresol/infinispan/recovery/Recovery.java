package io.entresol.infinispan.recovery;

import io.entresol.Durability;
import io.entresol.Entries;
import io.entresol.PutOptions;
import io.entresol.Space;
import io.entresol.StoreException;
import io.entresol.infinispan.Privileged;
import io.entresol.infinispan.recovery.Answer.Phase;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.IntFunction;
import org.infinispan.AdvancedCache;
import org.infinispan.distribution.LocalizedCacheTopology;
import org.infinispan.distribution.ch.ConsistentHash;
import org.infinispan.distribution.ch.impl.ConsistentHashFactory;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.globalstate.GlobalConfigurationManager;
import org.infinispan.globalstate.GlobalStateManager;
import org.infinispan.globalstate.ScopedState;
import org.infinispan.globalstate.impl.GlobalConfigurationManagerImpl;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.partitionhandling.AvailabilityMode;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.PersistenceException;
import org.infinispan.remoting.transport.Address;
import org.infinispan.statetransfer.StateTransferManagerImpl;
import org.infinispan.topology.LocalTopologyManager;
import org.infinispan.topology.PersistentUUIDManager;
import org.infinispan.util.concurrent.BlockingManager;
import org.infinispan.util.logging.Log;
import org.infinispan.util.logging.LogFactory;

/**
 * Makes a clustered cache's stores a source of recovery: decides at the start, before the node
 * joins, whether the entries in its store count, and writes every topology down before the node
 * takes part in it.
 */
public final class Recovery implements AutoCloseable {
    private static final Log LOG = LogFactory.getLog(Recovery.class);
    private static final byte[] KEY = "standing".getBytes(StandardCharsets.US_ASCII);
    private static final long PAUSE_MILLIS = 100;
    private static final Started<Recovery> STARTED = new Started<>();
    /** Lineages of caches that could not recover: they may be undeployed all the same. */
    private static final Started<UUID> FAILED = new Started<>();

    private final String name;
    private final AdvancedCache<?, ?> cache;
    private final Space own;
    private final GlobalComponentRegistry registry;
    private final GlobalStateManager states;
    private final PersistentUUIDManager identities;
    private final BlockingManager blocking;
    private final Peers peers;
    private final Policy policy;
    private final UUID node;
    private final Optional<Borrowed> borrowed;
    private final Map<Address, UUID> nodes = new ConcurrentHashMap<>();
    private final Reunion reunion;

    private volatile Phase phase;
    private volatile Standing standing;
    private volatile Plan plan;
    private volatile UUID lineage;
    private volatile long incarnation;

    private Recovery(InitializationContext context, RecoveryOptions options, Space own) {
        this.cache = context.getCache().getAdvancedCache();
        this.name = cache.getName();
        this.own = own;
        EmbeddedCacheManager manager = cache.getCacheManager();
        this.registry = Privileged.getRegistry(manager);
        this.states = registry.getComponent(GlobalStateManager.class);
        this.identities = registry.getComponent(PersistentUUIDManager.class);
        this.node = registry.getComponent(LocalTopologyManager.class).getPersistentUUID();
        this.blocking = context.getBlockingManager();
        this.peers = new Peers(manager);
        this.reunion = new Reunion(cache);
        this.borrowed = Borrowed.find(manager, name);
        this.phase = borrowed.isPresent() ? Phase.BORROWING : Phase.WAITING;
        ConsistentHashFactory<?> factory = StateTransferManagerImpl.pickConsistentHashFactory(
                context.getGlobalConfiguration(), cache.getCacheConfiguration());
        this.policy = new Policy(name, node, options.timeoutMillis(), options.missing(),
                saved -> new SavedHash(name, saved, factory));
    }

    /** What a store's entries are worth before others are asked. */
    public enum Worth {
        /** What its standing says. */
        AS_SAID,
        /** Nothing: the node withdrew, and the store may not have been able to write that down. */
        WORTHLESS
    }

    /**
     * Waits until it is known what the store's entries are worth; {@code own} is the space of what
     * the store keeps for itself. Throws if that does not become known in time.
     */
    public static Recovery begin(InitializationContext context, RecoveryOptions options,
            Space own, Worth worth) {
        Recovery recovery = new Recovery(context, options, own);
        FAILED.find(recovery.cache.getCacheManager(), recovery.name).ifPresent(former ->
                FAILED.remove(recovery.registry, recovery.name, former));
        // Before anybody can ask: who has a standing must not seem to have none.
        recovery.standing = recovery.read(worth);
        STARTED.add(recovery.registry, recovery.name, recovery);
        try {
            recovery.decide();
        } catch (RuntimeException | Error failure) {
            recovery.close();
            if (recovery.standing != null) {
                FAILED.add(recovery.registry, recovery.name, recovery.standing.lineage());
            }
            throw failure;
        }
        return recovery;
    }

    /** Whether the store's entries count; else they are to be dropped before the node joins. */
    public boolean keepsEntries() {
        return phase == Phase.RESTORING;
    }

    /** What comes from other nodes into the store, whose segments {@code store} gives. */
    public Arrivals arrivals(IntFunction<Entries> store) {
        return Arrivals.into(cache, store,
                keepsEntries() ? Arrivals.Kept.ENTRIES : Arrivals.Kept.NOTHING, this::close);
    }

    /** Answers nobody any more. */
    @Override
    public void close() {
        STARTED.remove(registry, name, this);
    }

    /** That of a cache that this node has started or tried to; empty if it does not recover. */
    static Optional<UUID> lineage(EmbeddedCacheManager manager, String cache) {
        return STARTED.find(manager, cache).flatMap(there -> Optional.ofNullable(there.standing))
                .map(Standing::lineage).or(() -> FAILED.find(manager, cache));
    }

    /** Those that a degraded cache waits for are back; no news to one that is not, or not any more. */
    static void reunite(EmbeddedCacheManager manager, String cache, long incarnation) {
        STARTED.find(manager, cache).filter(there -> there.isDegradedIn(incarnation))
                .ifPresent(there -> there.reunion.begin());
    }

    /** What a node says of a cache, and of those lineages that the one that asks heard of. */
    private static Function<EmbeddedCacheManager, String> question(String cache,
            String lineages) {
        return (Function<EmbeddedCacheManager, String> & Serializable) asked ->
                STARTED.find(asked, cache).map(Recovery::answer)
                        .orElseGet(() -> Answer.absent(""))
                        .knowing(Undeployed.of(asked).among(Answer.lineages(lineages)))
                        .toString();
    }

    /** A topology is about to be installed; nothing of it happens before this is done. */
    CompletionStage<Void> installing(ConsistentHash hash, int topology) {
        if (cache.getAvailability() == AvailabilityMode.AVAILABLE) {
            return write(hash, new Epoch(incarnation, view(), topology, 0));
        }
        // A node that never was part of an available cache serves nobody yet.
        if (phase != Phase.RUNNING) {
            return CompletableFuture.completedFuture(null);
        }
        // Partitions that went on meanwhile are newer than this one, whatever it does.
        Epoch last = standing.epoch();
        return write(hash, new Epoch(
                last.incarnation(), last.view(), last.topology(), last.change() + 1));
    }

    /** The cache serves all keys from now on, by the topology that is installed. */
    CompletionStage<Void> becomingAvailable() {
        LocalizedCacheTopology topology = cache.getDistributionManager().getCacheTopology();
        return write(topology.getReadConsistentHash(),
                new Epoch(incarnation, view(), topology.getTopologyId(), 0));
    }

    /** Where members were done without, others get the copies that these had. */
    void becameAvailable() {
        Plan done = plan;
        plan = null;
        if (done != null && !done.whole() && cache.getCacheManager().isCoordinator()) {
            blocking.runBlocking(() ->
                    registry.getClusterTopologyManager().forceRebalance(name), "entresol-copies");
        }
    }

    private void decide() {
        cache.addListener(new TopologyListener(this));
        long start = System.nanoTime();
        String told = "";
        Set<UUID> lineages = new HashSet<>();
        while (true) {
            if (cache.getCacheManager().getStatus().isStopping()
                    || cache.getCacheManager().getStatus().isTerminated()) {
                throw new PersistenceException("the container of cache " + name
                        + " stopped while the cache waited for others");
            }
            if (borrowed.filter(Borrowed::isGivenBack).isPresent()) {
                throw new UndeployedException(name);
            }
            List<Answer> answers = ask(lineages);
            long waited = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
            Choice choice = policy.choose(answers, waited);
            if (choice instanceof Choice.Refuse refuse) {
                throw new PersistenceException(refuse.why());
            }
            if (choice instanceof Choice.Wait wait) {
                if (waited > TimeUnit.SECONDS.toMillis(2) && !told.equals(wait.why())) {
                    told = wait.why();
                    LOG.infof("Waiting: %s", told);
                }
                pause();
            } else if (choice instanceof Choice.Follow) {
                pause();
            } else if (choice instanceof Choice.Reunite reunite) {
                await(peers.ask(Reunion.request(name, reunite.incarnation())));
                pause();
            } else if (act(choice)) {
                return;
            }
        }
    }

    /** What all say of the cache; {@code lineages} gets those that any of them has. */
    private List<Answer> ask(Set<UUID> lineages) {
        Standing known = standing;
        if (known != null) {
            lineages.add(known.lineage());
        }
        List<Answer> answers = await(peers.ask(question(name, Answer.text(lineages))))
                .entrySet().stream()
                .map(said -> Answer.parse(said.getKey().toString(), said.getValue()))
                .toList();
        answers.stream().map(Answer::standing).filter(Objects::nonNull)
                .forEach(other -> lineages.add(other.lineage()));
        return answers;
    }

    /** Does what was chosen; whether the node may join now. */
    private boolean act(Choice choice) {
        if (choice instanceof Choice.Claim) {
            phase = Phase.CLAIMING;
        } else if (choice instanceof Choice.Withdraw) {
            phase = Phase.WAITING;
        } else if (choice instanceof Choice.StartEmpty) {
            lineage = UUID.randomUUID();
            incarnation = 1;
            phase = Phase.STARTING;
            return true;
        } else if (choice instanceof Choice.Prepare prepare) {
            prepare(prepare.plan());
        } else if (choice instanceof Choice.Restore restore) {
            lineage = restore.plan().lineage();
            incarnation = restore.plan().incarnation();
            LOG.infof("Cache %s recovers with %s", name, restore.plan().members().values());
            phase = Phase.RESTORING;
            return true;
        } else if (choice instanceof Choice.Join join) {
            join(join.running());
            return true;
        } else if (choice instanceof Choice.Forget) {
            forget();
        }
        return false;
    }

    /**
     * There may be a new cache of the name, which this node then takes part in as one that never
     * had any. Else it is to be forgotten: a node that started it empty would deploy it again.
     */
    private void forget() {
        Standing gone = standing;
        if (gone != null) {
            // Others that have it may ask this node, and nobody else who knows.
            Undeployed.of(cache.getCacheManager()).add(gone.lineage());
        }
        // It would be taken for what the next cache of the name had.
        states.deleteScopedState(name);
        if (!isDeployed()) {
            throw new UndeployedException(name);
        }
        if (gone != null) {
            LOG.infof("Cache %s was deployed anew while this node was away: its entries of epoch"
                    + " %s are dropped", name, gone.epoch());
            await(own.removeAsync(KEY));
        }
        standing = null;
        plan = null;
        phase = Phase.WAITING;
    }

    /** Whether the cluster's configuration has the cache now. */
    private boolean isDeployed() {
        return Privileged.getCache(cache.getCacheManager(),
                        GlobalConfigurationManager.CONFIG_STATE_CACHE_NAME)
                .containsKey(new ScopedState(GlobalConfigurationManagerImpl.CACHE_SCOPE, name));
    }

    /**
     * Every node has Infinispan's file while the cluster is put together, whichever coordinates;
     * Infinispan removes it where the entries are used, this class where they are not.
     */
    private void prepare(Plan drawnUp) {
        if (standing == null) {
            // The file must not be taken for a past of this node's own after a crash.
            await(write(new Standing(drawnUp.lineage(), Epoch.NONE, false, drawnUp.members(),
                    drawnUp.hash())));
        }
        states.writeScopedState(SavedHash.state(name, drawnUp.hash()));
        plan = drawnUp;
        phase = Phase.PREPARED;
    }

    private void join(Standing running) {
        if (standing != null && standing.holds()) {
            LOG.infof("Cache %s went on without this node: its entries of epoch %s are dropped,"
                    + " the cluster's are of %s", name, standing.epoch(), running.epoch());
        }
        // First, so that a crash from here on leaves no entries that seem to count.
        await(write(running.withoutEntries()));
        Undeployed.of(cache.getCacheManager()).strike(running.lineage());
        states.deleteScopedState(name);
        lineage = running.lineage();
        incarnation = running.epoch().incarnation();
        plan = null;
        phase = Phase.JOINING;
    }

    private CompletionStage<Void> write(ConsistentHash hash, Epoch epoch) {
        Map<UUID, String> members = new LinkedHashMap<>();
        for (Address member : hash.getMembers()) {
            members.put(identity(member), member.toString());
        }
        boolean holds = !hash.getSegmentsForOwner(
                cache.getRpcManager().getAddress()).isEmpty();
        Standing now = new Standing(lineage, epoch, holds, members,
                SavedHash.save(name, hash, this::identity));
        return write(now).thenRun(() -> phase = Phase.RUNNING);
    }

    /** Durable whatever the entries are: they may be newer than it, never older. */
    private CompletionStage<Void> write(Standing now) {
        byte[] text = now.toString().getBytes(StandardCharsets.UTF_8);
        return own.putAsync(KEY, text, PutOptions.DEFAULT.durability(Durability.SYNCED))
                .thenAccept(version -> standing = now);
    }

    private Standing read(Worth worth) {
        try {
            Standing read = read();
            return read == null || worth == Worth.AS_SAID ? read : read.withoutEntries();
        } catch (StoreException damaged) {
            if (worth == Worth.WORTHLESS) {
                return null;
            }
            throw new PersistenceException("cache " + name + ": what its store says of the cluster"
                    + " cannot be read: " + damaged.getMessage() + ". Replace the device or delete"
                    + " the file, and start the cache again: the others give this node its"
                    + " entries", damaged);
        }
    }

    /** What the store says; where it is silent, what a shutdown of the whole cluster left. */
    private Standing read() {
        byte[] text = own.get(KEY);
        if (text != null) {
            return parse(new String(text, StandardCharsets.UTF_8));
        }
        return states.readScopedState(name).map(state -> {
            Map<String, String> hash = SavedHash.entries(state);
            Map<UUID, String> members = new LinkedHashMap<>();
            SavedHash.members(hash).forEach(member -> members.put(member, member.toString()));
            UUID shared = UUID.nameUUIDFromBytes(
                    ("" + state.getChecksum()).getBytes(StandardCharsets.US_ASCII));
            return new Standing(shared, Epoch.NONE, members.containsKey(node), members, hash);
        }).orElse(null);
    }

    private Standing parse(String text) {
        Standing read;
        try {
            read = Standing.parse(text);
        } catch (IllegalArgumentException mistake) {
            throw new PersistenceException("the store of cache " + name
                    + " says what no version of this one wrote: " + mistake.getMessage(), mistake);
        }
        int configured = cache.getCacheConfiguration().clustering().hash().numSegments();
        int saved = SavedHash.segments(read.hash(), configured);
        if (saved != configured) {
            throw new PersistenceException("the store of cache " + name + " has " + saved
                    + " segments, its configuration " + configured + "; configure segments=\""
                    + saved + "\", or remove the stores of all nodes");
        }
        return read;
    }

    private boolean isDegradedIn(long asked) {
        return phase == Phase.RUNNING && standing.epoch().incarnation() == asked
                && cache.getAvailability() == AvailabilityMode.DEGRADED_MODE;
    }

    private Answer answer() {
        boolean available = phase == Phase.RUNNING
                && cache.getAvailability() == AvailabilityMode.AVAILABLE;
        return new Answer("", node, phase, available, standing, plan, Set.of());
    }

    /** Nodes that left are still in hashes for a while, when Infinispan may have forgotten them. */
    private UUID identity(Address address) {
        UUID found = identities.getPersistentUuid(address);
        if (found != null) {
            nodes.put(address, found);
            return found;
        }
        // A node that joins right after another one died may never hear who that was. The next
        // topology is without it; until then it counts as a member that is missing.
        return nodes.computeIfAbsent(address, unknown -> UUID.nameUUIDFromBytes(
                unknown.toString().getBytes(StandardCharsets.UTF_8)));
    }

    private int view() {
        return cache.getRpcManager().getTransport().getViewId();
    }

    private void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(PAUSE_MILLIS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new PersistenceException("interrupted while cache " + name
                    + " waited for others", interrupted);
        }
    }

    private static <T> T await(CompletionStage<T> stage) {
        return stage.toCompletableFuture().join();
    }
}
