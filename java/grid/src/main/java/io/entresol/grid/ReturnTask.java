package io.entresol.grid;

/** Has every node wait no longer for caches that only others have: the cluster is to be stopped. */
public final class ReturnTask extends GridTask {
    static final String NAME = "entresol-return";

    /** As the server makes it. */
    public ReturnTask() {
        super(NAME);
    }

    @Override
    public String call() {
        DeployedCaches.of(context().getCacheManager()).ifPresent(DeployedCaches::giveBack);
        return NAME;
    }
}
