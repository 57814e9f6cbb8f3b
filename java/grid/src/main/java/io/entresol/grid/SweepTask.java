package io.entresol.grid;

import org.infinispan.security.AuthorizationPermission;

/**
 * Removes the file of a dropped cache's store on every node: Infinispan empties the store of such a
 * cache, but never tells the store that it is no longer needed. Named devices stay.
 */
public final class SweepTask extends GridTask {
    static final String NAME = "entresol-sweep";

    /** As the server makes it. */
    public SweepTask() {
        super(NAME, AuthorizationPermission.CREATE);
    }

    @Override
    String answer() {
        String name = String.valueOf(context().getParameters().orElseThrow().get("name"));
        // A node that has not come to its caches yet is as one that is away: it finds out itself.
        DeployedCaches.of(context().getCacheManager())
                .ifPresent(deployed -> deployed.sweep(name));
        return name;
    }
}
