package io.entresol.jdbc.internal.rows;

import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.infinispan.AdvancedCache;
import org.infinispan.distribution.DistributionManager;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.remoting.transport.jgroups.SuspectException;
import org.infinispan.statetransfer.OutdatedTopologyException;
import org.infinispan.statetransfer.StateTransferLock;

/**
 * The owners of a cache's segments, for questions to the indexes of its nodes. Each node answers
 * for the segments that it owns in the view of the asking node. If owners change meanwhile, the
 * answer may lack entries that moved, and the question is asked again.
 *
 * <p>A node lets go of a segment's index only after all nodes know its new owner. So if the owners
 * are the same before and after the question, they were the same during it.
 */
public final class Owners {
    /** Changes of owners that one question outlasts; a cluster that changes faster says so. */
    private static final int ATTEMPTS = 20;

    private final AdvancedCache<?, ?> cache;
    private final DistributionManager distribution;
    private final StateTransferLock topologies;

    public Owners(AdvancedCache<?, ?> cache) {
        this.cache = cache;
        this.distribution = cache.getDistributionManager();
        this.topologies = ComponentRegistry.componentOf(cache, StateTransferLock.class);
    }

    /** Whether a node has a part of the entries only. */
    boolean areMany() {
        return distribution != null
                && !cache.getCacheConfiguration().clustering().cacheMode().isReplicated();
    }

    /** About what part of all entries this node has. */
    double share() {
        if (!areMany()) {
            return 1;
        }
        int nodes = distribution.getCacheTopology().getActualMembers().size();
        return Math.min(1, cache.getCacheConfiguration().clustering().hash().numOwners()
                / (double) Math.max(1, nodes));
    }

    /** The answer to a question that all of its owners heard. */
    public <T> T ask(Supplier<T> question) {
        if (!areMany()) {
            return question.get();
        }
        RuntimeException last = null;
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            int before = topology();
            try {
                T answer = question.get();
                if (topology() == before) {
                    return answer;
                }
            } catch (RuntimeException failure) {
                last = failure;
                if (topology() == before && !awaitsNext(failure, before + 1)) {
                    throw failure;
                }
            }
        }
        throw new IllegalStateException("the owners of cache " + cache.getName() + " changed "
                + ATTEMPTS + " times while its index was asked; repeat the statement", last);
    }

    private int topology() {
        return distribution.getCacheTopology().getTopologyId();
    }

    /** Where a node left that was asked, others are to own what it owned; waits until they do. */
    private boolean awaitsNext(RuntimeException failure, int topology) {
        if (!isDeparture(failure)) {
            return false;
        }
        try {
            topologies.topologyFuture(topology).toCompletableFuture().get(
                    cache.getCacheConfiguration().clustering().remoteTimeout(),
                    TimeUnit.MILLISECONDS);
            return true;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return false;
        } catch (ExecutionException | CompletionException
                | TimeoutException none) {
            return false;
        }
    }

    private static boolean isDeparture(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof SuspectException || cause instanceof OutdatedTopologyException) {
                return true;
            }
        }
        return false;
    }
}
