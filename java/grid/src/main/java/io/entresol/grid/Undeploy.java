package io.entresol.grid;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.infinispan.commons.dataconversion.internal.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code entresol-grid undeploy}. */
@Command(name = "undeploy", mixinStandardHelpOptions = true,
        description = "Drops a cache and its entries on all nodes, and the file of its store.",
        footer = {"", "Examples:", "  entresol-grid undeploy prices",
            "  entresol-grid undeploy prices --keep-data"})
public final class Undeploy implements Callable<Integer> {
    @Parameters(paramLabel = "NAME", description = "the cache's name")
    private String name;

    @Option(names = "--keep-data", description = "leave the entries where they are: deploy has"
            + " them again, deploy --reformat and undeploy drop them")
    private boolean keepData;

    @Mixin
    private Target target;

    @Override
    public Integer call() {
        if (Caches.isInfinispans(name)) {
            throw new GridException("cache '" + name + "' is Infinispan's own, and has what all"
                    + " others need; it cannot be dropped. Those that can: entresol-grid list");
        }
        Rest rest = target.rest();
        Optional<Json> kept = KeepTask.kept(rest, name);
        // One that could not start is on the nodes that have it, and nobody is asked for it.
        boolean isDeployed = isSaid(look(rest, name), UndoTask.HAS)
                || Caches.names(rest).contains(name);
        if (kept.isPresent() && !isDeployed && !keepData) {
            KeepTask.drop(rest, name, kept.get());
            report("dropped", "dropped what was kept of ");
            return 0;
        }
        if (!isDeployed) {
            Caches.require(rest, name);
        }
        if (name.equals(Endpoints.RESP) || name.equals(Endpoints.MEMCACHED)) {
            throw new GridException("cache '" + name + "' is what an endpoint of the nodes writes"
                    + " to; it can be emptied, not dropped");
        }
        if (keepData) {
            keep(rest);
            report("kept", "undeployed, with its data kept, ");
            return 0;
        }
        if (kept.isPresent()) {
            // Somebody began to keep it, and did not undeploy it.
            KeepTask.take(rest, KeepTask.Step.DROP, name);
        }
        drop(rest, name);
        report("undeployed", "undeployed ");
        return 0;
    }

    private void report(String fact, String sentence) {
        System.out.println(target.json() ? Json.object(fact, name).toString() : sentence + name);
    }

    private void keep(Rest rest) {
        List<Json> nodes = look(rest, name);
        if (!nodes.stream().allMatch(node -> node.has(UndoTask.RUNS)
                && node.at(UndoTask.RUNS).asBoolean())) {
            throw new GridException("cache '" + name + "' does not run on all nodes, and what each"
                    + " of them has of it counts: see entresol-grid list, mend what hinders it,"
                    + " then undeploy it");
        }
        if (Caches.flashStore(Caches.configuration(rest, name)).isEmpty()) {
            throw new GridException("cache '" + name + "' has its entries in RAM, where nothing"
                    + " can be kept; leave --keep-data out");
        }
        if (nodes.size() > 1) {
            throw new GridException("cache '" + name + "' is on " + nodes.size() + " nodes, of"
                    + " which each would give its entries up as the others leave; stop the grid"
                    + " instead, which keeps them: entresol-grid stop --cluster");
        }
        KeepTask.take(rest, KeepTask.Step.KEEP, name);
        rest.delete(Rest.cache(name));
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
