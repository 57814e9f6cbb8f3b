package io.entresol.grid;

import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * An attempt of this node to make a cache that was deployed in the cluster. It may be taken back
 * before it has ended, for example on a slow node: then the node drops the cache as soon as the
 * attempt ends. A withdrawal of a deployment names its own attempts, because there may be another
 * deployment of the name by then.
 */
final class Attempt {
    private final boolean known;
    private final boolean found;
    private final String id = UUID.randomUUID().toString();
    private final CompletableFuture<Void> end = new CompletableFuture<>();
    private boolean made;
    private boolean undone;
    private boolean failed;
    private boolean removed;

    /**
     * Begins one.
     *
     * @param known whether this node had the cache before
     * @param found whether it had the file of a store of that name
     */
    Attempt(boolean known, boolean found) {
        this.known = known;
        this.found = found;
    }

    /** As no other is called, of any node. */
    String id() {
        return id;
    }

    /** Whether it is among those of a deployment, which {@link Undo} joins. */
    boolean isOf(String deployment) {
        return deployment.contains(id);
    }

    boolean known() {
        return known;
    }

    boolean found() {
        return found;
    }

    /** Once nothing is done for it any more. */
    CompletionStage<Void> end() {
        return end;
    }

    boolean isUnderWay() {
        return !end.isDone();
    }

    /** Takes it back; whether it is made, so that the caller has to drop the cache. */
    synchronized boolean undo() {
        undone = true;
        return made;
    }

    /** It is made, or could not be; whether it was taken back meanwhile. */
    synchronized boolean made(boolean failing) {
        made = true;
        failed = failing;
        return undone;
    }

    /** Whoever waited for it goes on. */
    void finish() {
        end.complete(null);
    }

    /** Its cache is the cluster's no more, or is being removed. */
    synchronized void remove() {
        removed = true;
    }

    /** It could not be removed. */
    synchronized void stay() {
        removed = false;
    }

    synchronized boolean isRemoved() {
        return removed;
    }

    synchronized boolean failed() {
        return failed;
    }
}
