package io.entresol.grid;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.infinispan.commons.dataconversion.internal.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code entresol-grid stop}. */
@Command(name = "stop", mixinStandardHelpOptions = true,
        description = {"Stops the nodes of a folder, or a whole cluster.",
            "Several nodes of a folder stop as a cluster. A single one leaves its cluster: entries"
                + " that no other node has a backup of are away until it is back."},
        footer = {"", "Examples:", "  entresol-grid stop --dir /var/lib/grid",
            "  entresol-grid stop --cluster --server 10.0.0.1:11222 --user admin"})
final class Stop implements Callable<Integer> {
    private static final long PATIENCE_SECONDS = 60;

    @Option(names = "--dir", paramLabel = "FOLDER", defaultValue = "entresol-grid",
            description = "the folder that the nodes were started with (${DEFAULT-VALUE})")
    private Path folder;

    @Option(names = "--cluster", description = "stop all nodes of the cluster that --server is in,"
            + " so that all know when they come back that nobody has anything newer")
    private boolean cluster;

    @Mixin
    private Target target;

    @Override
    public Integer call() {
        List<NodeFolder> nodes = nodes();
        List<ProcessHandle> running = nodes.stream().map(NodeFolder::process)
                .flatMap(Optional::stream).toList();
        if (cluster) {
            stopCluster(target.rest());
        } else if (running.size() > 1) {
            stopCluster(nodes.stream().flatMap(node -> node.readRunning().stream())
                    .map(facts -> target.rest(facts.at("address").asString() + ":"
                            + facts.at("rest").asInteger()))
                    .findFirst().orElseThrow(() -> new GridException("the nodes of " + folder
                            + " are still starting; stop them once they serve")));
        } else if (running.isEmpty()) {
            throw new GridException("no node runs in " + folder.toAbsolutePath()
                    + "; name the folder that it was started with: --dir");
        } else {
            running.forEach(ProcessHandle::destroy);
        }
        running.forEach(Stop::awaitEnd);
        nodes.forEach(NodeFolder::removePid);
        System.out.println(target.json()
                ? Json.object("stopped", running.size(), "cluster", cluster).toString()
                : cluster ? "the cluster stops" : "stopped: " + running.size());
        return 0;
    }

    /** All know then when they come back that none has anything newer. */
    private static void stopCluster(Rest rest) {
        rest.post("/v2/cluster?action=stop", null, "");
    }

    /** The folder itself, or those of its nodes. */
    private List<NodeFolder> nodes() {
        List<NodeFolder> nodes = new ArrayList<>(List.of(new NodeFolder(folder)));
        if (!Files.isDirectory(folder)) {
            return nodes;
        }
        try (Stream<Path> inside = Files.list(folder)) {
            inside.filter(path -> path.getFileName().toString().matches("node-[0-9]"))
                    .map(NodeFolder::new).forEach(nodes::add);
        } catch (IOException failure) {
            throw new GridException("cannot list " + folder + ": " + failure, failure);
        }
        return nodes;
    }

    private static void awaitEnd(ProcessHandle process) {
        try {
            process.onExit().get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            throw new GridException("process " + process.pid() + " was told to stop and still runs"
                    + " after " + PATIENCE_SECONDS + " s; end it with kill -9 " + process.pid()
                    + ": it keeps what its durability promised", late);
        } catch (InterruptedException | ExecutionException failure) {
            throw new GridException("interrupted while process " + process.pid() + " stopped",
                    failure);
        }
    }
}
