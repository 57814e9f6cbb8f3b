package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import java.io.Serializable;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.infinispan.commons.CacheException;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.lifecycle.ComponentStatus;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.remoting.transport.Address;
import org.jboss.logging.Logger;

/**
 * The progress of the other nodes of the view. If a running node lacks a cache, the cluster does
 * not have that cache. A starting node may only not have reached it, and may die before it does.
 */
final class OtherNodes {
    private static final Logger LOG = Logger.getLogger(OtherNodes.class);
    private static final long PATIENCE_SECONDS = 10;
    /** Of a node that is in the view all the while, and does not say, as before it can. */
    private static final long SILENCE_SECONDS = 120;
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private final EmbeddedCacheManager manager;

    /**
     * How far a node is. It begins to make its caches once those that recover, and may wait for
     * other nodes, are started.
     */
    enum Phase { COMES_UP, MAKES, RUNS }

    OtherNodes(EmbeddedCacheManager manager) {
        this.manager = manager;
    }

    /** The caches of those that run; empty if none does. */
    Optional<Set<String>> cachesOfRunning() {
        return cachesOfRunning(ask().values());
    }

    /**
     * The same, once none that came before this node makes its caches any more: it runs by then, or
     * is gone. That is the limit: whoever comes first waits for nobody here.
     */
    Optional<Set<String>> cachesOfRunningAfterEarlier() {
        Address own = manager.getAddress();
        Address told = null;
        while (true) {
            Map<Address, Said> all = ask();
            Optional<Address> awaited = view().stream().takeWhile(node -> !node.equals(own))
                    .filter(node -> all.containsKey(node) && all.get(node).phase() == Phase.MAKES)
                    .findFirst();
            if (awaited.isEmpty()) {
                return cachesOfRunning(all.values());
            }
            if (!awaited.get().equals(told)) {
                told = awaited.get();
                LOG.infof("Waiting until node %s, which came first, has made its caches", told);
            }
            if (manager.getStatus() != ComponentStatus.INITIALIZING) {
                throw new CacheException("the node was stopped while it started");
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    private static Optional<Set<String>> cachesOfRunning(Collection<Said> all) {
        List<Said> running = all.stream().filter(said -> said.phase() == Phase.RUNS).toList();
        return running.isEmpty() ? Optional.empty()
                : Optional.of(running.stream().flatMap(said -> said.caches().stream())
                        .collect(Collectors.toSet()));
    }

    /** All that are in the view, without this node; who dies meanwhile is not. */
    private Map<Address, Said> ask() {
        Address own = manager.getAddress();
        long begun = System.nanoTime();
        while (true) {
            Map<Address, Said> said = new ConcurrentHashMap<>();
            if (view().size() < 2) {
                return said;
            }
            try {
                Privileged.getClusterExecutor(manager)
                        .filterTargets(each -> !each.equals(own))
                        .timeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
                        .submitConsumer(saying(), (node, text, failure) -> {
                            if (failure == null) {
                                said.put(node, Said.parse(text));
                            } else {
                                LOG.debugf(failure, "Node %s does not say what it does", node);
                            }
                        }).join();
            } catch (CompletionException | CacheException failure) {
                LOG.debug("The other nodes do not say what they do", failure);
            }
            Optional<Address> silent = view().stream()
                    .filter(node -> !node.equals(own) && !said.containsKey(node)).findFirst();
            if (silent.isEmpty()) {
                return said;
            }
            if (System.nanoTime() - begun > TimeUnit.SECONDS.toNanos(SILENCE_SECONDS)) {
                throw new CacheException("node " + silent.get() + " does not say whether it runs;"
                        + " see its log, and stop it or start this node again");
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    /** Empty where there is no cluster. */
    private List<Address> view() {
        List<Address> view = manager.getMembers();
        return view == null ? List.of() : view;
    }

    /** Runs on each of them. */
    private static Function<EmbeddedCacheManager, String> saying() {
        return (Function<EmbeddedCacheManager, String> & Serializable) other -> {
            Optional<DeployedCaches> there = DeployedCaches.of(other);
            boolean runs = other.getStatus() == ComponentStatus.RUNNING;
            boolean makes = there.filter(DeployedCaches::makes).isPresent();
            return Json.object("phase", (runs ? Phase.RUNS
                    : makes ? Phase.MAKES : Phase.COMES_UP).name(), "caches",
                    Json.make(runs ? there.map(DeployedCaches::names).orElse(Set.of()) : Set.of()))
                    .toString();
        };
    }

    /**
     * What a node said.
     *
     * @param phase how far it is
     * @param caches if it runs: those that it has, whatever the cluster's own cache says of them,
     *     which Infinispan does not fill again after a stop of the whole cluster
     */
    private record Said(Phase phase, Set<String> caches) {
        static Said parse(String text) {
            Json said = Json.read(text);
            return new Said(Phase.valueOf(said.at("phase").asString()),
                    said.at("caches").asJsonList().stream().map(Json::asString)
                            .collect(Collectors.toSet()));
        }
    }
}
