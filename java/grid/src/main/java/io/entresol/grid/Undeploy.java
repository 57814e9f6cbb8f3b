package io.entresol.grid;

import java.util.List;
import java.util.concurrent.Callable;
import org.infinispan.commons.dataconversion.internal.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** {@code entresol-grid undeploy}. */
@Command(name = "undeploy", mixinStandardHelpOptions = true,
        description = "Drops a cache and its entries on all nodes, and the file of its store.",
        footer = {"", "Example:", "  entresol-grid undeploy prices"})
public final class Undeploy implements Callable<Integer> {
    @Parameters(paramLabel = "NAME", description = "the cache's name")
    private String name;

    @Mixin
    private Target target;

    @Override
    public Integer call() {
        if (Caches.isInfinispans(name)) {
            throw new GridException("cache '" + name + "' is Infinispan's own, and has what all"
                    + " others need; it cannot be dropped. Those that can: entresol-grid list");
        }
        Rest rest = target.rest();
        // One that could not start is on the nodes that have it, and nobody is asked for it.
        if (!isSaid(look(rest, name), UndoTask.HAS)) {
            Caches.require(rest, name);
        }
        if (name.equals(Endpoints.RESP) || name.equals(Endpoints.MEMCACHED)) {
            throw new GridException("cache '" + name + "' is what an endpoint of the nodes writes"
                    + " to; it can be emptied, not dropped");
        }
        drop(rest, name);
        System.out.println(target.json()
                ? Json.object("undeployed", name).toString() : "undeployed " + name);
        return 0;
    }

    private static List<Json> look(Rest rest, String name) {
        return Caches.say(rest, UndoTask.path(name));
    }

    private static boolean isSaid(List<Json> nodes, String what) {
        return nodes.stream().anyMatch(node -> node.has(what) && node.at(what).asBoolean());
    }

    /** Drops a cache that is there, and the files of its stores. */
    public static void drop(Rest rest, String name) {
        List<Json> nodes = look(rest, name);
        // One that nodes only wait in is not the cluster's: whoever waits drops it.
        boolean isAwaited = isSaid(nodes, UndoTask.STARTS) && !isSaid(nodes, UndoTask.RUNS);
        if (!isAwaited && rest.exists(Rest.cache(name))) {
            rest.delete(Rest.cache(name));
        }
        rest.post("/v2/tasks/" + SweepTask.NAME + "?action=exec&param.name=" + Rest.encode(name),
                null, "");
    }
}
