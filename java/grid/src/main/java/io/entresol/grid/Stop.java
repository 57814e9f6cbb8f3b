package io.entresol.grid;

import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.infinispan.commons.dataconversion.internal.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code entresol-grid stop}. */
@Command(name = "stop", mixinStandardHelpOptions = true,
        description = {"Stops the nodes of a folder, or a whole cluster.",
            "Several nodes of a folder stop as a cluster. A single one leaves its cluster once the"
                + " others have copies of all that it has; of a cache without backups they never"
                + " do, and it stays. --cluster stops all and keeps all."},
        footer = {"", "Examples:", "  entresol-grid stop --dir /var/lib/grid",
            "  entresol-grid stop --dir /var/lib/grid --force",
            "  entresol-grid stop --cluster --server 10.0.0.1:11222 --user admin"})
final class Stop implements Callable<Integer> {
    private static final long PATIENCE_SECONDS = 60;
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    @Option(names = "--dir", paramLabel = "FOLDER", defaultValue = "entresol-grid",
            description = "the folder that the nodes were started with (${DEFAULT-VALUE})")
    private Path folder;

    @Option(names = "--cluster", description = "stop all nodes of the cluster that --server is in,"
            + " so that all know when they come back that nobody has anything newer")
    private boolean cluster;

    @Option(names = "--force", description = "have a node leave its cluster at once, without"
            + " entries that no other node has: they are lost, also once it is back")
    private boolean force;

    @Mixin
    private Target target;

    @Override
    public Integer call() {
        if (force && cluster) {
            throw new GridException("--force has a node leave its cluster, and --cluster stops it"
                    + " as a whole, which loses nothing; leave one of them out");
        }
        List<NodeFolder> nodes = nodes();
        List<Running> running = nodes.stream().map(Running::in).flatMap(Optional::stream).toList();
        List<Running> stopping = cluster ? stopCluster(target.rest(), running) : stopAll(running);
        stopping.forEach(this::awaitEnd);
        nodes.stream().filter(node -> node.process().isEmpty()).forEach(NodeFolder::removePid);
        System.out.println(target.json()
                ? Json.object("stopped", stopping.size(), "cluster", cluster).toString()
                : cluster ? "the cluster stops" : "stopped: " + stopping.size());
        return 0;
    }

    /** Nodes that serve stop as a cluster; those that still start have none yet to stop with. */
    private List<Running> stopAll(List<Running> running) {
        if (running.isEmpty()) {
            throw new GridException("no node runs in " + folder.toAbsolutePath()
                    + "; name the folder that it was started with: --dir");
        }
        List<Running> left = new ArrayList<>(running);
        Optional<Running> serving = running.stream().filter(Running::serves).findFirst();
        while (running.size() > 1 && serving.isPresent()) {
            // They need not be of one cluster.
            left.remove(serving.get());
            left.removeAll(stopCluster(serving.get().rest(target), left));
            serving = left.stream().filter(Running::serves).findFirst();
        }
        if (force) {
            left.forEach(node -> node.folder.leaveAtOnce());
        }
        left.forEach(node -> node.process.destroy());
        return running;
    }

    /**
     * All know then when they come back that none has anything newer. Those of {@code running}
     * that are among them.
     */
    private static List<Running> stopCluster(Rest rest, List<Running> running) {
        List<String> members = rest.get("/v2/container").at("cluster_members_physical_addresses")
                .asJsonList().stream().map(Json::asString).toList();
        rest.post("/v2/cluster?action=stop", null, "");
        return running.stream().filter(node -> members.stream().anyMatch(node::isAt)).toList();
    }

    /** A node of this machine, and what it said of itself; null unless it serves. */
    private record Running(NodeFolder folder, ProcessHandle process, Json facts) {
        /** What a node that was killed said of itself is nobody's any more. */
        static Optional<Running> in(NodeFolder folder) {
            return folder.process().map(process -> new Running(folder, process, folder.readRunning()
                    .filter(facts -> facts.at("pid").asLong() == process.pid()).orElse(null)));
        }

        boolean serves() {
            return facts != null;
        }

        String name() {
            return serves() ? "node " + facts.at("name").asString()
                    : "the node in " + folder.root();
        }

        /** What it says by now of why it has not stopped. */
        Optional<String> says(String what) {
            return folder.readRunning().filter(now -> serves() && now.has(what))
                    .map(now -> now.at(what).asString());
        }

        /** By its own certificate if it speaks TLS, whatever names and authority that has. */
        Rest rest(Target target) {
            Path own = folder.configuration().resolve(NodeTls.CLIENTS.own());
            return target.rest(server(), facts.has(Node.TLS)
                    ? Optional.of(target.tlsOf(own)) : Optional.empty());
        }

        private String server() {
            return facts.at("address").asString() + ":" + facts.at("rest").asInteger();
        }

        /** Whether it is the member at that {@code ADDRESS:PORT}. */
        boolean isAt(String member) {
            int colon = member.lastIndexOf(':');
            return serves() && colon > 0
                    && member.substring(colon + 1).equals("" + facts.at("cluster").asInteger())
                    && isHere(member.substring(0, colon));
        }

        private static boolean isHere(String address) {
            try {
                InetAddress named = InetAddress.getByName(address);
                return named.isLoopbackAddress()
                        || NetworkInterface.getByInetAddress(named) != null;
            } catch (IOException unknown) {
                return false;
            }
        }
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

    private void awaitEnd(Running node) {
        ProcessHandle process = node.process;
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (!NodeFolder.hasEnded(process)) {
            Optional<String> stays = node.says(Leave.STAYS);
            boolean late = System.nanoTime() > deadline;
            if (stays.isPresent() && !force) {
                throw new GridException(node.name() + " stays, as entries would be lost: "
                        + stays.get() + ". Stop all nodes, which keeps them: entresol-grid stop"
                        + " --cluster" + orForce());
            }
            Optional<String> waits = late ? node.says(Leave.WAITS) : Optional.empty();
            if (waits.isPresent()) {
                throw new GridException(node.name() + " still serves after " + PATIENCE_SECONDS
                        + " s, and leaves as soon as nothing is lost by it: " + waits.get()
                        + orForce());
            }
            if (late) {
                throw new GridException("process " + process.pid() + " was told to stop and still"
                        + " runs after " + PATIENCE_SECONDS + " s; end it with kill -9 "
                        + process.pid() + ": it keeps what its durability promised");
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    private String orForce() {
        return "; to have it leave at once, without them: entresol-grid stop --dir "
                + folder + " --force";
    }
}
