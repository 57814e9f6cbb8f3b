package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import io.entresol.infinispan.recovery.Borrowed;
import io.entresol.infinispan.recovery.Undeployed;
import io.entresol.infinispan.recovery.UndeployedException;
import java.io.ByteArrayInputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.infinispan.Cache;
import org.infinispan.commons.CacheException;
import org.infinispan.commons.api.CacheContainerAdmin;
import org.infinispan.commons.configuration.io.ConfigurationResourceResolvers;
import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.configuration.ConfigurationManager;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.parsing.ConfigurationBuilderHolder;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.globalstate.impl.OverlayLocalConfigurationStorage;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.util.concurrent.BlockingManager;
import org.jboss.logging.Logger;

/**
 * The deployed caches that a node has saved. At its start Infinispan makes them one after another,
 * each under a lock of the whole cluster. A recovering cache waits in its start for other nodes,
 * and these would wait for the lock. So recovering caches start here, before any node takes the
 * lock, in the order of their names, which is the same on all nodes. Infinispan then finds them
 * running.
 *
 * <p>The lineage of a recovering cache shows whether it was undeployed while this node was away:
 * the cache asks for it while it waits. If not, the cache exists, even if other nodes do not know
 * it. While it waits, it is offered to nodes that lack it because they were away when it was
 * deployed, and they start it. A cache of another kind that the cluster lacks is not made again,
 * because nobody can tell whether it was undeployed.
 */
public final class DeployedCaches extends OverlayLocalConfigurationStorage {
    private static final Logger LOG = Logger.getLogger(DeployedCaches.class);
    private static final long PATIENCE_SECONDS = 10;
    /** So many attempts may be known before those that failed are forgotten. */
    private static final int FAILED_MAX = 1000;
    /** Of the nodes of this process that have come to their deployed caches. */
    private static final Map<GlobalComponentRegistry, DeployedCaches> NODES =
            new ConcurrentHashMap<>();
    /** What is deployed is saved here, not by Infinispan: it forgets what it has not come to. */
    private static final EnumSet<CacheContainerAdmin.AdminFlag> NOT_SAVED =
            EnumSet.of(CacheContainerAdmin.AdminFlag.VOLATILE);

    private KeptData kept;
    private SavedCaches saved;
    /** Configurations of which caches can be made. */
    private SavedCaches templates;
    /** Caches of others that are being started here, or could not be. */
    private final Set<String> taken = ConcurrentHashMap.newKeySet();
    private final Set<Borrowed> borrowed = ConcurrentHashMap.newKeySet();
    /** Caches that recover and are being started, this node's own and those of others. */
    private final Map<String, CompletableFuture<Void>> waiting = new ConcurrentHashMap<>();
    /** The latest to make caches, by name: of those that there are, and some that failed. */
    private final Map<String, Attempt> attempts = new ConcurrentHashMap<>();
    /** What caches that were removed have on this node's disks, until somebody removes that. */
    private final Map<String, Set<Path>> left = new ConcurrentHashMap<>();
    private volatile boolean refuses;
    private volatile boolean makes;
    /**
     * Held where it is said that a name's store is about to be opened, and where one is removed once
     * nobody has said so: a file that is removed is nobody's. That is the I/O under it; whoever waits
     * for it does so in a thread that may. It is taken after this object's own, never before.
     */
    private final Object stores = new Object();

    /** Those of a node; empty before it comes to them. */
    static Optional<DeployedCaches> of(EmbeddedCacheManager manager) {
        return Optional.ofNullable(NODES.get(Privileged.getRegistry(manager)));
    }

    @Override
    public void initialize(EmbeddedCacheManager manager, ConfigurationManager configurations,
            BlockingManager blocking) {
        super.initialize(manager, configurations, blocking);
        Path folder = Path.of(Privileged.getCacheManagerConfiguration(manager)
                .globalState().sharedPersistentLocation());
        kept = new KeptData(manager);
        saved = new SavedCaches(folder.resolve("caches.xml"), super.loadAllCaches());
        templates = new SavedCaches(folder.resolve("templates.xml"), super.loadAllTemplates());
        ClusterState.awaitStores(manager);
    }

    @Override
    public Map<String, Configuration> loadAllTemplates() {
        return templates.all();
    }

    @Override
    public CompletionStage<Void> createTemplate(String name, Configuration configuration,
            EnumSet<CacheContainerAdmin.AdminFlag> flags) {
        CompletionStage<Void> made = super.createTemplate(name, configuration, NOT_SAVED);
        return flags.contains(CacheContainerAdmin.AdminFlag.VOLATILE) ? made
                : blockingManager.thenRunBlocking(made, () -> templates.put(name,
                        configurationManager.getConfiguration(name, true)), name);
    }

    @Override
    public CompletionStage<Void> removeTemplate(String name,
            EnumSet<CacheContainerAdmin.AdminFlag> flags) {
        return blockingManager.runBlocking(() -> templates.remove(name), name)
                .thenCompose(noted -> super.removeTemplate(name, flags));
    }

    /**
     * Those to be made; of what the cluster has already its own configuration counts. Where no node
     * runs there is no such cluster yet: others come up, too, and may not have come to a cache.
     */
    @Override
    public Map<String, Configuration> loadAllCaches() {
        NODES.put(Privileged.getRegistry(cacheManager), this);
        OtherNodes others = new OtherNodes(cacheManager);
        Map<String, Configuration> made = Secured.all(cacheManager, saved.all());
        // First: what is deployed there after that is in what the cluster has.
        Optional<Set<String>> running = others.cachesOfRunning();
        Set<String> there = ClusterState.caches(cacheManager);
        made.entrySet().removeIf(each -> there.contains(each.getKey())
                || SavedCaches.recovers(each.getValue()) && !start(each.getKey(), each.getValue(),
                        !there.isEmpty() || lacks(running, each.getKey())));
        makes = true;
        if (!made.values().stream().allMatch(SavedCaches::recovers)) {
            Optional<Set<String>> first = others.cachesOfRunningAfterEarlier();
            Set<String> known = ClusterState.caches(cacheManager);
            made.entrySet().removeIf(each -> !SavedCaches.recovers(each.getValue())
                    && (known.contains(each.getKey()) || isForgotten(each.getKey(), first)));
        }
        return made;
    }

    private static boolean lacks(Optional<Set<String>> running, String name) {
        return running.isPresent() && !running.get().contains(name);
    }

    /** Forgets a cache that nodes which run lack; whether this one does not have it any more. */
    private boolean isForgotten(String name, Optional<Set<String>> running) {
        if (lacks(running, name) && saved.has(name)) {
            LOG.warnf("The cluster does not have cache %s, which this node had: it was"
                    + " undeployed while this node was away, or deployed while the others"
                    + " were. Its entries stay in the file of its store here: deploy the"
                    + " cache again to have them, or remove the file", name);
            saved.remove(name);
        }
        return !saved.has(name);
    }

    /** Returns the kept data of undeployed caches. */
    KeptData kept() {
        return kept;
    }

    /** The caches that this node has, and those that the cluster has by what it knows. */
    Set<String> names() {
        Set<String> names = new HashSet<>(saved.all().keySet());
        names.addAll(ClusterState.caches(cacheManager));
        return names;
    }

    /** Whether all of its caches that recover are started, or could not be. */
    boolean makes() {
        return makes;
    }

    @Override
    public CompletionStage<Void> createCache(String name, String template,
            Configuration configuration, EnumSet<CacheContainerAdmin.AdminFlag> flags) {
        return formerStart(name, configuration).thenCompose(over ->
                blockingManager.supplyBlocking(() -> begin(name), name)).thenCompose(attempt -> {
            CompletionStage<Void> made;
            try {
                made = super.createCache(name, template,
                        Secured.in(cacheManager, configuration), NOT_SAVED);
            } catch (RuntimeException failure) {
                made = CompletableFuture.failedFuture(failure);
            }
            return ended(name, attempt, flags.contains(CacheContainerAdmin.AdminFlag.VOLATILE)
                    ? made : blockingManager.thenRunBlocking(made, () -> save(name), name));
        });
    }

    private CompletionStage<Void> ended(String name, Attempt attempt,
            CompletionStage<Void> saving) {
        return saving.handle((done, failure) -> failure)
                .thenCompose(failure -> blockingManager.runBlocking(
                        () -> end(name, attempt, failure), name)
                        .thenCompose(ended -> failure == null ? done()
                                : CompletableFuture.failedFuture(failure)));
    }

    /**
     * The start of a former cache of the name, with other options, which goes on here. It is about
     * to find that the cache was undeployed, since the others have the new one.
     */
    private CompletionStage<Void> formerStart(String name, Configuration configuration) {
        CompletableFuture<Void> start = waiting.get(name);
        Configuration former = Privileged.getCacheConfiguration(cacheManager, name);
        return start == null || former == null || Secured.saved(former).matches(configuration)
                ? done() : start.copy().completeOnTimeout(null, PATIENCE_SECONDS, TimeUnit.SECONDS);
    }

    private Attempt begin(String name) {
        synchronized (stores) {
            boolean known = saved.has(name)
                    || Privileged.getCacheConfiguration(cacheManager, name) != null;
            if (attempts.size() >= FAILED_MAX) {
                attempts.values().removeIf(each -> each.isRemoved());
            }
            Attempt attempt = new Attempt(known, Files.exists(StoreFiles.of(cacheManager, name)));
            attempts.put(name, attempt);
            return attempt;
        }
    }

    /**
     * The cluster keeps the configuration of a cache that a node could not make, and runs it on
     * those that could: it is taken back from all. A node that starts tells whoever started it.
     */
    private void end(String name, Attempt attempt, Throwable failure) {
        // Infinispan keeps to itself that a cache did not start, and tells the next who wants it.
        boolean failed = failure != null || !cacheManager.isRunning(name);
        boolean undone = attempt.made(failed);
        try {
            if (!failed && !undone) {
                KeptData.strike(cacheManager, name);
            }
            if (undone) {
                LOG.infof("Cache %s was taken back while it was made here", name);
                takeBack(name, attempt);
            }
        } finally {
            attempt.finish();
        }
        boolean refused = failed && !attempt.known()
                && cacheManager.getStatus().allowInvocations();
        if (refused && !undone) {
            LOG.errorf(failure, "Cache %s cannot be made on this node: it is taken back from all",
                    name);
        }
        if (refused || undone) {
            Undo.begin(cacheManager, name,
                    () -> attempts.get(name) == attempt && !attempt.isRemoved());
        }
    }

    @Override
    public CompletionStage<Void> updateConfiguration(String name, Configuration configuration,
            EnumSet<CacheContainerAdmin.AdminFlag> flags) {
        CompletionStage<Void> changed = super.updateConfiguration(name, configuration, flags);
        return saved.has(name) ? blockingManager.thenRunBlocking(changed, () -> save(name), name)
                : changed;
    }

    @Override
    public CompletionStage<Void> removeCache(String name,
            EnumSet<CacheContainerAdmin.AdminFlag> flags) {
        Attempt attempt = attempts.get(name);
        if (attempt != null) {
            // Before another deployment can begin anywhere: it waits until all have removed this.
            attempt.remove();
        }
        // First: once the cache is stopped nobody can tell its lineage.
        return blockingManager.runBlocking(() -> note(name), name)
                .thenCompose(noted -> attempt == null ? done() : attempt.end())
                .thenCompose(ended -> blockingManager.runBlocking(() -> {
                    note(name);
                    unsave(name, attempt);
                }, name))
                .thenCompose(forgotten -> super.removeCache(name, flags))
                .whenComplete((removed, failure) -> {
                    kept.left(name);
                    if (failure != null && attempt != null) {
                        attempt.stay();
                    }
                })
                .thenRun(() -> forget(name, attempt));
    }

    private static CompletionStage<Void> done() {
        return CompletableFuture.completedFuture(null);
    }

    /** Once nobody takes the cache back any more, who would meet the next one of the name. */
    private synchronized void unsave(String name, Attempt attempt) {
        // What is on the devices of one that was never made is not its own.
        if (kept.isLeaving(name)) {
            kept.leave(name);
        } else if (attempt == null || attempt.known() || !attempt.failed()) {
            StoreFiles.noteDevices(cacheManager, name);
            left.put(name, StoreFiles.configured(cacheManager, name));
        }
        saved.remove(name);
    }

    /** One that failed is asked for until there is another of the name. */
    private void forget(String name, Attempt attempt) {
        if (attempt != null && !attempt.failed()) {
            attempts.remove(name, attempt);
        }
    }

    /**
     * Takes a cache back that was made a moment ago, as it does not run everywhere: with the file
     * of its store, unless that was there before. Entries of a former cache may be in it, or on
     * devices that were named. One that is still being made is taken back by whoever makes it, and
     * one of another deployment of the name stays.
     */
    void withdraw(String name, String deployment) {
        Attempt attempt = attempts.get(name);
        if (attempt != null && attempt.isOf(deployment) && attempt.undo()) {
            takeBack(name, attempt);
        }
    }

    /** Has the cluster forget a cache that was taken back; not while it is being made here. */
    void forget(String name, String deployment) {
        Undo.forget(cacheManager, name, () -> {
            Attempt attempt = attempts.get(name);
            // Where no node has begun there is none to tell it from.
            return attempt == null ? deployment.isEmpty()
                    : attempt.isOf(deployment) && !attempt.isUnderWay() && !attempt.isRemoved();
        });
    }

    /** The attempt of this node at the deployment that it was told of last; empty if at none. */
    String attempt(String name) {
        Attempt attempt = attempts.get(name);
        return attempt == null ? "" : attempt.id();
    }

    boolean isMaking(String name) {
        Attempt attempt = attempts.get(name);
        return attempt != null && attempt.isUnderWay();
    }

    /** Whether this node could not make the cache when the cluster was last told to have it. */
    boolean failed(String name) {
        Attempt attempt = attempts.get(name);
        return attempt != null && attempt.failed();
    }

    /** Whether this node had the cache before the cluster was last told to have it. */
    boolean knew(String name) {
        Attempt attempt = attempts.get(name);
        return attempt == null ? saved.has(name) : attempt.known();
    }

    private synchronized void takeBack(String name, Attempt attempt) {
        // A removal waits for who makes the cache, and else drops it itself.
        boolean isRemoved = attempt.isRemoved() && !attempt.isUnderWay();
        if (isRemoved || Privileged.getCacheConfiguration(cacheManager, name) == null) {
            return;
        }
        try {
            saved.remove(name);
        } catch (UncheckedIOException failure) {
            // It may be what the cache could not be made for: that is left out by the next change.
            LOG.warnf(failure, "That cache %s was taken back could not be saved", name);
        }
        // Whoever removes a cache that is open empties its store.
        Cache<?, ?> cache = cacheManager.isRunning(name)
                ? cacheManager.getCache(name, false) : null;
        if (cache != null) {
            Privileged.stopCache(cache);
        }
        synchronized (stores) {
            Privileged.getRegistry(cacheManager).removeCache(name);
            removeCacheSync(name, EnumSet.noneOf(CacheContainerAdmin.AdminFlag.class));
            if (!attempt.found()) {
                StoreFiles.sweep(cacheManager, name,
                        Set.of(StoreFiles.of(cacheManager, name)));
            }
        }
    }

    /** Whether this node starts a cache with itself. */
    boolean has(String name) {
        return saved.has(name);
    }

    /**
     * Drops a cache that is deployed and does not run here: whom it waits for never comes. One that
     * waits finds that it was undeployed, as a node does that was away; so do those who wait for it.
     */
    void abandon(String name) {
        synchronized (stores) {
            if (waiting.containsKey(name)) {
                note(name);
            } else if (saved.has(name) && !isMaking(name) && !cacheManager.isRunning(name)) {
                note(name);
                StoreFiles.noteDevices(cacheManager, name);
                drop(name);
            }
        }
    }

    /**
     * Removes what a cache that was dropped has left in this node's folder. What is started drops
     * itself; one that another deployment of the name has begun to make is in use.
     */
    void sweep(String name) {
        synchronized (stores) {
            abandon(name);
            if (waiting.containsKey(name)) {
                return;
            }
            if (isMaking(name)
                    || Privileged.getCacheConfiguration(cacheManager, name) != null) {
                throw new IllegalStateException("cache '" + name + "' is in use");
            }
            Set<Path> files = left.remove(name);
            StoreFiles.sweep(cacheManager, name,
                    files == null ? Set.of(StoreFiles.of(cacheManager, name)) : files);
        }
    }

    /** Whether a cache that recovers is being started here, and may wait in its start. */
    boolean isStarting(String name) {
        return waiting.containsKey(name);
    }

    /** Starts a cache that another node waits in, and that this one never heard of. */
    void take(String name, String xml) {
        boolean known = saved.has(name)
                || Privileged.getCacheConfiguration(cacheManager, name) != null;
        if (refuses || known || !taken.add(name)) {
            return;
        }
        // It waits for others: not in a thread of Infinispan's.
        Thread starting = new Thread(() -> borrow(name, xml), "entresol takes " + name);
        starting.setDaemon(true);
        starting.start();
    }

    /** Has every node wait no longer for caches of others: the cluster is to be stopped. */
    static void giveBackEverywhere(EmbeddedCacheManager manager) {
        try {
            Privileged.getClusterExecutor(manager)
                    .timeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
                    .submitConsumer(givingBack(), (node, said, failure) -> {
                        if (failure != null) {
                            LOG.warnf(failure, "Node %s was not told to wait no longer", node);
                        }
                    }).join();
        } catch (RuntimeException failure) {
            LOG.warn("The nodes were not told to wait no longer", failure);
        }
    }

    /** Whether the cluster of this node is being stopped. */
    static boolean clusterStops(EmbeddedCacheManager manager) {
        return of(manager).filter(there -> there.refuses).isPresent();
    }

    /** Runs on each node. */
    private static Function<EmbeddedCacheManager, String> givingBack() {
        return (Function<EmbeddedCacheManager, String> & Serializable) manager -> {
            of(manager).ifPresent(DeployedCaches::giveBack);
            return "";
        };
    }

    /** Takes none any more, either. */
    private void giveBack() {
        refuses = true;
        borrowed.forEach(Borrowed::giveBack);
    }

    private void save(String name) {
        saved.put(name, Secured.saved(configurationManager.getConfiguration(name, true)));
    }

    private void note(String name) {
        if (kept.isLeaving(name)) {
            // Its lineage goes on.
            return;
        }
        try {
            Undeployed.note(cacheManager, name);
        } catch (UncheckedIOException failure) {
            // The other nodes note it as well.
            LOG.warnf(failure, "That cache %s was undeployed could not be noted", name);
        }
    }

    /**
     * Starts a cache that recovers; whether it runs. If not, the node serves its others. Where the
     * cluster has caches, this one may have been undeployed, and a node whose store is gone cannot
     * tell: it takes part in what somebody has of it, and never starts it empty.
     */
    private boolean start(String name, Configuration configuration, boolean beside) {
        synchronized (stores) {
            if (!saved.has(name)) {
                // It was dropped while others were started.
                return false;
            }
            if (Privileged.getCacheConfiguration(cacheManager, name) == null) {
                Secured.define(cacheManager, name, configuration);
            }
            waiting.put(name, new CompletableFuture<>());
        }
        try (Borrowed others = beside ? Borrowed.begin(cacheManager, name) : null;
                Offer told = Offer.begin(cacheManager, name,
                Endpoints.xml(Map.of(name, configuration)))) {
            Privileged.getCache(cacheManager, name);
            return true;
        } catch (CacheException failure) {
            if (isStopping()) {
                throw failure;
            }
            if (UndeployedException.isCauseOf(failure)) {
                LOG.infof("Cache %s was undeployed while this node was away", name);
                StoreFiles.noteDevices(cacheManager, name);
                drop(name);
            } else {
                LOG.errorf(failure, "Cache %s does not run on this node, which serves its others."
                        + " Mend what hinders it and start the node again", name);
            }
            return false;
        } finally {
            waiting.remove(name).complete(null);
        }
    }

    private void borrow(String name, String xml) {
        Borrowed others = Borrowed.begin(cacheManager, name);
        borrowed.add(others);
        synchronized (stores) {
            waiting.put(name, new CompletableFuture<>());
        }
        if (refuses) {
            others.giveBack();
        }
        try {
            LOG.infof("Cache %s was deployed while this node was away: it takes part", name);
            Secured.define(cacheManager, name, read(name, xml));
            Privileged.getCache(cacheManager, name);
        } catch (RuntimeException failure) {
            if (isStopping() || refuses) {
                // What this node has may count once all start again: a stop takes nothing away.
                return;
            }
            if (!UndeployedException.isCauseOf(failure)) {
                LOG.errorf(failure, "Cache %s, which others have, does not run on this node. Mend"
                        + " what hinders it and start the node again", name);
                return;
            }
            LOG.infof("Cache %s does not start here: nobody who has it is there", name);
            if (!ClusterState.caches(cacheManager).contains(name)) {
                drop(name);
            }
        } finally {
            waiting.remove(name).complete(null);
            others.close();
            borrowed.remove(others);
        }
        taken.remove(name);
    }

    private Configuration read(String name, String xml) {
        ConfigurationBuilderHolder holder = configurationManager.toBuilderHolder();
        ClusterState.leaveOut(holder);
        parserRegistry.parse(new ByteArrayInputStream(xml.getBytes(StandardCharsets.UTF_8)),
                holder, ConfigurationResourceResolvers.DEFAULT, MediaType.APPLICATION_XML);
        return holder.getNamedConfigurationBuilders().get(name).build();
    }

    private boolean isStopping() {
        return cacheManager.getStatus().isStopping() || cacheManager.getStatus().isTerminated();
    }

    /** The file of its store last: with it goes what tells that the cache was undeployed. */
    private void drop(String name) {
        synchronized (stores) {
            if (isMaking(name)) {
                // Another deployment of the name has it, and what there is.
                return;
            }
            Set<Path> files = StoreFiles.configured(cacheManager, name);
            removeCacheSync(name, EnumSet.noneOf(CacheContainerAdmin.AdminFlag.class));
            saved.remove(name);
            StoreFiles.sweep(cacheManager, name, files);
        }
    }
}
