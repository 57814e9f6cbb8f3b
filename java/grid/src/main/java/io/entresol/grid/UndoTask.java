package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import io.entresol.infinispan.Unopened;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.security.AuthorizationPermission;

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
    /** Why its store could not be opened; missing if it could be. */
    static final String REASON = "reason";
    /** The node's attempt at the deployment that it speaks of, and the attempts of all nodes. */
    static final String ATTEMPT = "attempt";
    static final String DEPLOYMENT = "deployment";
    /** Steps: to look, to take back on each node, and to have the cluster forget the cache. */
    static final String LOOK = "look";
    static final String WITHDRAW = "withdraw";
    static final String FORGET = "forget";

    /** As the server makes it. */
    public UndoTask() {
        super(NAME, AuthorizationPermission.CREATE);
    }

    @Override
    String answer() {
        EmbeddedCacheManager manager = context().getCacheManager();
        Map<String, ?> parameters = context().getParameters().orElseThrow();
        String name = String.valueOf(parameters.get("name"));
        Json said = Json.object("node",
                Privileged.getCacheManagerConfiguration(manager).transport().nodeName());
        String deployment = Objects.toString(parameters.get(DEPLOYMENT), "");
        Optional<DeployedCaches> caches = DeployedCaches.of(manager);
        switch (String.valueOf(parameters.get("step"))) {
            case WITHDRAW -> caches.ifPresent(deployed -> deployed.withdraw(name, deployment));
            case FORGET -> caches.ifPresent(deployed -> deployed.forget(name, deployment));
            default -> caches.ifPresent(there -> said.set(RUNS, manager.isRunning(name))
                    .set(HAS, there.has(name)).set(STARTS, there.isStarting(name))
                    .set(FAILED, there.failed(name)).set(MAKES, there.isMaking(name))
                    .set(ATTEMPT, there.attempt(name)));
        }
        Unopened.reason(Privileged.getCacheManagerConfiguration(manager), name)
                .ifPresent(reason -> said.set(REASON, reason));
        return said.toString();
    }

    /** The path to look at a cache. */
    static String path(String cache) {
        return path(LOOK, cache, "");
    }

    /** The path of a step for a deployment of a cache. */
    static String path(String step, String cache, String deployment) {
        return "/v2/tasks/" + NAME + "?action=exec&param.step=" + step + "&param.name="
                + Rest.encode(cache) + "&param." + DEPLOYMENT + "=" + Rest.encode(deployment);
    }
}
