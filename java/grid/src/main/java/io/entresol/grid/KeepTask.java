package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.security.AuthorizationPermission;

/** Makes every node keep the data of a cache that is about to be undeployed, or drop kept data. */
public final class KeepTask extends GridTask {
    static final String NAME = "entresol-keep";
    /** In the answer of a node: the facts of its note, if it keeps data of the cache. */
    private static final String KEPT = "kept";

    /** The step that a node takes before it answers. */
    enum Step { LOOK, KEEP, DROP }

    /** Makes the task, as the server does. */
    public KeepTask() {
        super(NAME, AuthorizationPermission.CREATE);
    }

    @Override
    String answer() {
        EmbeddedCacheManager manager = context().getCacheManager();
        Map<String, ?> parameters = context().getParameters().orElseThrow();
        String name = String.valueOf(parameters.get("name"));
        Step step = Step.valueOf(String.valueOf(parameters.get("step")));
        DeployedCaches.of(manager).ifPresent(there -> {
            if (step == Step.KEEP) {
                there.kept().begin(name);
            } else if (step == Step.DROP) {
                there.kept().left(name);
                KeptData.strike(manager, name);
                if (Privileged.getCacheConfiguration(manager, name) == null) {
                    there.sweep(name);
                }
            }
        });
        Json said = Json.object("node",
                Privileged.getCacheManagerConfiguration(manager).transport().nodeName());
        KeptData.facts(manager, name).ifPresent(facts -> said.set(KEPT, facts));
        return said.toString();
    }

    /** Returns the facts of kept data of a cache, from any node; empty if no node keeps any. */
    static Optional<Json> kept(Rest rest, String cache) {
        return take(rest, Step.LOOK, cache).stream().filter(node -> node.has(KEPT))
                .map(node -> node.at(KEPT)).findFirst();
    }

    /** Makes all nodes take a step, and returns their answers. */
    static List<Json> take(Rest rest, Step step, String cache) {
        return Caches.say(rest, "/v2/tasks/" + NAME + "?action=exec&param.step=" + step
                + "&param.name=" + Rest.encode(cache));
    }

    /** Drops the kept data of a cache that is not deployed. */
    static void drop(Rest rest, String cache, Json facts) {
        if (facts.at(KeptData.DEVICES).asBoolean()) {
            throw new GridException("what is kept of cache '" + cache + "' is on devices that were"
                    + " named, which may have other data by now; to drop it, deploy the cache on"
                    + " them as before, then: entresol-grid undeploy " + cache);
        }
        take(rest, Step.DROP, cache);
    }
}
