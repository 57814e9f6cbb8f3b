package io.entresol.grid;

import io.entresol.infinispan.recovery.Leaving;
import io.entresol.infinispan.recovery.Leaving.Step;
import io.entresol.infinispan.recovery.Leaving.Verdict;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.lifecycle.ComponentStatus;
import org.infinispan.server.Server;
import org.jboss.logging.Logger;

/**
 * The time between the order to stop and the stop of a node: the node serves until its leaving
 * loses nothing, or until somebody forces it to leave, and notes in its folder what it waits for.
 */
final class Leave {
    private static final Logger LOG = Logger.getLogger(Leave.class);
    /** Among what a node says of itself: why it has not left. */
    static final String WAITS = "leaving";
    /** The same of one that does not leave by itself. */
    static final String STAYS = "staying";
    private static final long LOOK_MILLIS = 250;
    /** A cluster that stops has synced all of its stores by then. */
    private static final long CLUSTER_SECONDS = 600;

    private final Server server;
    private final CompletableFuture<?> exit;
    private final NodeFolder folder;
    private Verdict told = new Verdict(Step.LEAVE, "");

    Leave(Server server, CompletableFuture<?> exit, NodeFolder folder) {
        this.server = server;
        this.exit = exit;
        this.folder = folder;
    }

    /** Until the node may leave, or has stopped with its cluster. */
    void await() {
        // One that comes up owns nothing that others lack, or has not told them so.
        if (server.getStatus() != ComponentStatus.RUNNING) {
            return;
        }
        Leaving leaving = Leaving.begin(server.getCacheManager());
        while (!hasEnded(LOOK_MILLIS) && !folder.isToLeave()) {
            if (DeployedCaches.clusterStops(server.getCacheManager())) {
                hasEnded(TimeUnit.SECONDS.toMillis(CLUSTER_SECONDS));
                return;
            }
            Verdict verdict = look(leaving);
            if (verdict.step() == Step.LEAVE) {
                return;
            }
            tell(verdict);
            if (verdict.step() == Step.STOP_CLUSTER) {
                stopCluster();
            }
        }
    }

    /** Whoever leaves alone instead loses what it alone has: it is tried again. */
    private void stopCluster() {
        try {
            server.clusterStop();
        } catch (RuntimeException failure) {
            LOG.error("The cluster could not be stopped", failure);
        }
    }

    private static Verdict look(Leaving leaving) {
        try {
            return leaving.look();
        } catch (RuntimeException failure) {
            return new Verdict(Step.WAIT, "the other nodes could not be asked: " + failure);
        }
    }

    private void tell(Verdict verdict) {
        // Segments get fewer: what differs in numbers only is no news.
        boolean news = verdict.step() != told.step()
                || !unnumbered(verdict.why()).equals(unnumbered(told.why()));
        if (verdict.step() == Step.PAUSE || verdict.equals(told)) {
            return;
        }
        told = verdict;
        folder.readRunning().ifPresent(facts -> {
            for (String former : new String[] {WAITS, STAYS}) {
                if (facts.has(former)) {
                    facts.delAt(former);
                }
            }
            folder.writeRunning(facts.set(
                    verdict.step() == Step.STAY ? STAYS : WAITS, verdict.why()));
        });
        if (news) {
            LOG.warnf("This node was told to stop, and serves %s: %s", verdict.step() == Step.STAY
                    ? "on, as entries would be lost: entresol-grid stop --cluster stops all nodes"
                            + " and keeps them, entresol-grid stop --force this one without them"
                    : "until nothing is lost by its leaving", verdict.why());
        }
    }

    private static String unnumbered(String why) {
        return why.replaceAll("[0-9]+", "");
    }

    private boolean hasEnded(long millis) {
        try {
            exit.get(millis, TimeUnit.MILLISECONDS);
        } catch (TimeoutException serves) {
            return false;
        } catch (ExecutionException failure) {
            return true;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        return true;
    }
}
