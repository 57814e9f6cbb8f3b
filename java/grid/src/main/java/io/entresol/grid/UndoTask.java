package io.entresol.grid;

import java.util.Map;
import java.util.Optional;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.manager.EmbeddedCacheManager;

/**
 * Asks every node whether it has and runs a cache, or takes one back that is being deployed: JSON
 * text from each.
 */
public final class UndoTask extends GridTask {
    static final String NAME = "entresol-undo";
    /** What nodes say: whether it runs, or is to. One that still comes up says nothing. */
    static final String RUNS = "runs";
    static final String HAS = "has";
    static final String STARTS = "starts";
    /** Whether it could not make the cache, or has not come to an end with it. */
    static final String FAILED = "failed";
    static final String MAKES = "makes";
    /** Steps: to look, to take back on each node, and to have the cluster forget the cache. */
    static final String LOOK = "look";
    static final String WITHDRAW = "withdraw";
    static final String FORGET = "forget";

    /** As the server makes it. */
    public UndoTask() {
        super(NAME);
    }

    @Override
    public String call() {
        EmbeddedCacheManager manager = context().getCacheManager();
        Map<String, ?> parameters = context().getParameters().orElseThrow();
        String name = String.valueOf(parameters.get("name"));
        Json said = Json.object("node",
                manager.getCacheManagerConfiguration().transport().nodeName());
        Optional<DeployedCaches> caches = DeployedCaches.of(manager);
        switch (String.valueOf(parameters.get("step"))) {
            case WITHDRAW -> caches.ifPresent(deployed -> deployed.withdraw(name));
            case FORGET -> caches.ifPresent(deployed -> deployed.forget(name));
            default -> caches.ifPresent(there -> said.set(RUNS, manager.isRunning(name))
                    .set(HAS, there.has(name)).set(STARTS, there.isStarting(name))
                    .set(FAILED, there.failed(name)).set(MAKES, there.isMaking(name)));
        }
        return said.toString();
    }

    /** The path of a step for a cache. */
    static String path(String step, String cache) {
        return "/v2/tasks/" + NAME + "?action=exec&param.step=" + step + "&param.name="
                + Rest.encode(cache);
    }
}
