package io.entresol.grid;

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
        Rest rest = target.rest();
        Caches.require(rest, name);
        if (name.equals(Endpoints.RESP) || name.equals(Endpoints.MEMCACHED)) {
            throw new GridException("cache '" + name + "' is what an endpoint of the nodes writes"
                    + " to; it can be emptied, not dropped");
        }
        drop(rest, name);
        System.out.println(target.json()
                ? Json.object("undeployed", name).toString() : "undeployed " + name);
        return 0;
    }

    /** Drops a cache that is there, and the files of its stores. */
    public static void drop(Rest rest, String name) {
        rest.delete(Rest.cache(name));
        rest.post("/v2/tasks/" + SweepTask.NAME + "?action=exec&param.name=" + Rest.encode(name),
                null, "");
    }
}
