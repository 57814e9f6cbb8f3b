package io.entresol.grid;

import io.entresol.jdbc.TlsFiles;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.infinispan.commons.dataconversion.internal.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code entresol-grid start}. */
@Command(name = "start", mixinStandardHelpOptions = true,
        description = "Starts a node, or a cluster of nodes on this machine.",
        footer = {"", "Examples:",
            "  entresol-grid start --dir /var/lib/grid --memory 4g",
            "  entresol-grid start --nodes 3 --memory 512m --detach",
            "  entresol-grid start --bind 10.0.0.1 --users users --join 10.0.0.2:7800",
            "  entresol-grid start --bind 10.0.0.1 --users users --tls-cert cert.pem --tls-key"
                + " key.pem"})
final class Start implements Callable<Integer> {
    /** So small a part of the heap holds what endpoints keep in flight. */
    private static final int ENDPOINT_ENTRIES = 10_000;

    @Option(names = "--dir", paramLabel = "FOLDER", defaultValue = "entresol-grid",
            description = "where the node keeps everything (${DEFAULT-VALUE})")
    private Path folder;

    @Option(names = "--name", paramLabel = "NAME",
            description = "the node's name in the cluster (its folder's)")
    private String name;

    @Option(names = "--nodes", paramLabel = "N", defaultValue = "1",
            description = "so many nodes on this machine, for tests and trials; ports of each are"
                    + " 100 above those of the one before")
    private int nodes;

    @Option(names = "--port-offset", paramLabel = "N", defaultValue = "0",
            description = "added to all ports: 11222 (Hot Rod, REST, console, metrics), 6379"
                    + " (RESP), 11211 (memcached), 11765 (SQL), 7800 and 7840 (cluster)")
    private int portOffset;

    @Option(names = "--bind", paramLabel = "ADDRESS", defaultValue = "127.0.0.1",
            description = "address of the endpoints (${DEFAULT-VALUE})")
    private String bind;

    @Option(names = "--cluster-address", paramLabel = "ADDRESS",
            description = "address that other nodes reach this one at (that of --bind)")
    private String clusterAddress;

    @Option(names = "--cluster-name", paramLabel = "NAME", defaultValue = "entresol-grid",
            description = "nodes of other names are strangers (${DEFAULT-VALUE})")
    private String clusterName;

    @Option(names = "--join", paramLabel = "HOST:PORT", split = ",",
            description = "cluster addresses of other nodes, with commas between")
    private List<String> join = List.of();

    @Option(names = "--machine", paramLabel = "NAME",
            description = "what the node shares with those that fail with it, as a host or a rack:"
                    + " the copies of an entry are on nodes of different names, where there are;"
                    + " all nodes of a cluster say it, or none")
    private String machine;

    @Option(names = "--site", paramLabel = "SITE",
            description = "this grid's name among two that back each other up")
    private String site;

    @Option(names = "--other-site", paramLabel = "SITE=HOST:PORT,…",
            description = "the other one's name, and where its nodes listen for sites: 7850 and"
                    + " their offset")
    private String otherSite;

    @Option(names = "--users", paramLabel = "FILE",
            description = "who may connect, a user a line: NAME=PASSWORD, or a line of"
                    + " entresol-grid user add; needed beyond this machine")
    private Path users;

    @Option(names = "--tls-cert", paramLabel = "FILE",
            description = "certificate chain (PEM): with it all endpoints speak TLS alone")
    private Path tlsCertificate;

    @Option(names = "--tls-key", paramLabel = "FILE", description = "its private key (PEM)")
    private Path tlsKey;

    @Option(names = "--tls-client-ca", paramLabel = "FILE",
            description = "authorities (PEM) of certificates that clients must show")
    private Path tlsClientAuthorities;

    @Option(names = "--cluster-tls-cert", paramLabel = "FILE",
            description = "certificate chain (PEM) that the node shows to other nodes: with it they"
                    + " speak TLS to one another")
    private Path clusterCertificate;

    @Option(names = "--cluster-tls-key", paramLabel = "FILE",
            description = "its private key (PEM)")
    private Path clusterKey;

    @Option(names = "--cluster-tls-ca", paramLabel = "FILE",
            description = "authorities (PEM) of the certificates that other nodes must show")
    private Path clusterAuthorities;

    @Option(names = "--memory", paramLabel = "SIZE", defaultValue = "1g",
            description = "Java's heap of each node (${DEFAULT-VALUE}); flash caches have memory of"
                    + " their own beside it")
    private String memory;

    @Option(names = "--endpoint-template", paramLabel = "TEMPLATE", defaultValue = "flash",
            description = "what RESP and memcached clients write to: as --template of deploy"
                    + " (${DEFAULT-VALUE})")
    private String endpointTemplate;

    @Option(names = "--endpoint-capacity", paramLabel = "SIZE", defaultValue = "256MiB",
            description = "flash for RESP and as much for memcached (${DEFAULT-VALUE})")
    private String endpointCapacity;

    @Option(names = "--endpoint-memory", paramLabel = "SIZE", defaultValue = "64MiB",
            description = "memory for the store of each, outside of the heap (${DEFAULT-VALUE})")
    private String endpointMemory;

    @Option(names = "--histograms",
            description = "/metrics has histograms of the latencies of each cache's reads and"
                    + " writes; they take processor time at each of them")
    private boolean histograms;

    @Option(names = "--detach", description = "return once the nodes serve; they go on")
    private boolean detach;

    @Override
    public Integer call() {
        // The thread that stops them may come while they are started.
        List<NodeProcess> started = new CopyOnWriteArrayList<>();
        AtomicBoolean serving = new AtomicBoolean();
        AtomicBoolean served = new AtomicBoolean();
        Thread stopping = new Thread(() -> stop(started, serving.get()), "stop");
        Runtime.getRuntime().addShutdownHook(stopping);
        try {
            Optional<ClassArchive> archive = ClassArchive.ofThis();
            List<NodePlan> plans = missing(plans());
            for (NodePlan plan : plans) {
                started.add(NodeProcess.start(plan, detach, archive));
            }
            awaitRunning(started).forEach(Start::print);
            // Those that ran before are not this launcher's: what it started leaves them.
            serving.set(plans.size() == nodes);
            served.set(true);
        } finally {
            if (!served.get()) {
                // A cluster starts whole or not at all.
                stop(started, false);
            }
        }
        if (detach) {
            leave(stopping);
        }
        System.out.println(detach ? "stop with: entresol-grid stop --dir " + folder
                : "stop with Ctrl-C or SIGTERM");
        System.out.flush();
        return detach ? 0 : started.stream().mapToInt(NodeProcess::awaitEnd).max().orElse(0);
    }

    /** Of a cluster those nodes that do not run; all that run are of this one. */
    private List<NodePlan> missing(List<NodePlan> plans) {
        List<NodePlan> missing = plans.stream()
                .filter(plan -> plan.folder().process().isEmpty()).toList();
        if (nodes == 1 || missing.isEmpty()) {
            // Whoever starts one that runs says so.
            return plans;
        }
        for (NodePlan plan : plans) {
            Optional<ProcessHandle> running = plan.folder().process();
            if (running.isEmpty()) {
                continue;
            }
            int cluster = plan.ports().cluster();
            Optional<Json> other = plan.folder().readRunning()
                    .filter(facts -> facts.at("cluster").asInteger() != cluster);
            if (other.isPresent()) {
                throw new GridException("the node in " + plan.folder().root() + " runs with other"
                        + " ports: its cluster's is " + other.get().at("cluster").asInteger()
                        + "; expected " + cluster + ". Name its --port-offset, or stop it:"
                        + " entresol-grid stop --dir " + plan.folder().root());
            }
            System.out.printf("node %s runs already, process %d%n", plan.name(),
                    running.get().pid());
        }
        return missing;
    }

    /** What all say once they serve. Others may wait for one that cannot: they are not heard. */
    private static List<Json> awaitRunning(List<NodeProcess> started) {
        List<CompletableFuture<Json>> said = started.stream()
                .map(node -> CompletableFuture.supplyAsync(node::awaitRunning, Start::inOwnThread))
                .toList();
        CompletableFuture<Void> all = new CompletableFuture<>();
        said.forEach(each -> each.whenComplete((facts, failure) -> {
            if (failure != null) {
                all.completeExceptionally(failure);
            } else if (said.stream().allMatch(CompletableFuture::isDone)) {
                all.complete(null);
            }
        }));
        try {
            all.join();
        } catch (CompletionException failure) {
            throw failure.getCause() instanceof GridException sentence ? sentence : failure;
        }
        return said.stream().map(CompletableFuture::join).toList();
    }

    private static void inOwnThread(Runnable task) {
        Thread thread = new Thread(task, "listens");
        thread.setDaemon(true);
        thread.start();
    }

    /** From here on the nodes outlive the launcher. */
    private static void leave(Thread stopping) {
        try {
            Runtime.getRuntime().removeShutdownHook(stopping);
        } catch (IllegalStateException interrupted) {
            throw new GridException("the launcher was told to end: the nodes stop", interrupted);
        }
    }

    /** Several nodes stop as the cluster that they are, once they all serve. */
    static void stop(List<NodeProcess> started, boolean serving) {
        if (serving && started.size() > 1) {
            started.stream().filter(NodeProcess::isAlive).findFirst()
                    .ifPresent(NodeProcess::stopCluster);
        }
        // All are told before any is waited for: they may wait for each other.
        started.forEach(NodeProcess::tellToStop);
        started.forEach(NodeProcess::awaitEnd);
    }

    private List<NodePlan> plans() {
        if (nodes < 1 || nodes > 9) {
            throw new GridException("--nodes is " + nodes + "; expected 1 to 9 on one machine");
        }
        if (!memory.matches("[0-9]+[kKmMgG]")) {
            throw new GridException("--memory is '" + memory + "'; expected a size as Java takes"
                    + " it, such as 512m or 4g");
        }
        if (users != null && !Files.isReadable(users)) {
            throw new GridException("--users " + users + " cannot be read; write lines"
                    + " NAME=PASSWORD into it");
        }
        return IntStream.range(0, nodes).mapToObj(this::plan).toList();
    }

    private NodePlan plan(int number) {
        Map<NodeTls, TlsFiles> tls = new EnumMap<>(NodeTls.class);
        NodeTls.CLIENTS.parse(tlsCertificate, tlsKey, tlsClientAuthorities)
                .ifPresent(files -> tls.put(NodeTls.CLIENTS, files));
        NodeTls.NODES.parse(clusterCertificate, clusterKey, clusterAuthorities)
                .ifPresent(files -> tls.put(NodeTls.NODES, files));
        Ports ports = new Ports(portOffset + number * Ports.STEP);
        String own = clusterAddress == null ? bind : clusterAddress;
        NodeFolder place = new NodeFolder(
                nodes == 1 ? folder : folder.resolve("node-" + number));
        String called = name != null && nodes == 1 ? name
                : nodes == 1 ? String.valueOf(place.root().getFileName())
                : (name == null ? "node" : name) + "-" + number;
        return new NodePlan(called, place, ports, bind, own, members(own), clusterName,
                Site.parse(site, otherSite), machine, memory, users, tls, endpoints(),
                histograms);
    }

    /** {@code HOST[PORT],…}: those to join, and all that start here. */
    private String members(String own) {
        Stream<String> here = IntStream.range(0, nodes)
                .mapToObj(number -> new Ports(portOffset + number * Ports.STEP).cluster())
                .map(port -> own + ":" + port);
        return Members.parse("--join", Stream.concat(join.stream(), here).toArray(String[]::new));
    }

    private Deployment endpoints() {
        Template template = Template.parse("--endpoint-template", endpointTemplate);
        if (template.onTwoSites()) {
            throw new GridException("--endpoint-template is '" + endpointTemplate + "'; expected"
                    + " caches of one site: deploy others, which RESP clients select by name");
        }
        Deployment.Flash flash = !template.onFlash() ? null : new Deployment.Flash(
                endpointCapacity, endpointMemory, null, false, null, null, false);
        return new Deployment(template, Encoding.RESP, flash, flash == null
                ? OptionalLong.empty() : OptionalLong.of(ENDPOINT_ENTRIES),
                List.of(), List.of(), null);
    }

    private static void print(Json facts) {
        String address = facts.at("address").asString();
        String main = address + ":" + facts.at("rest").asInteger();
        String http = facts.has(Node.TLS) ? "https" : "http";
        System.out.printf("node %s serves, process %d%n", facts.at("name").asString(),
                facts.at("pid").asLong());
        System.out.printf("  Hot Rod, REST  %s%n", main);
        System.out.printf("  RESP           %s:%d%n", address, facts.at("resp").asInteger());
        System.out.printf("  memcached      %s:%d%n", address, facts.at("memcached").asInteger());
        System.out.printf("  SQL            %s://%s:%d%n", http, address,
                facts.at("sql").asInteger());
        System.out.printf("  stores         %s://%s:%d/%n", http, address,
                facts.at("sql").asInteger());
        System.out.printf("  console        %s://%s/console/%n", http, main);
        System.out.printf("  metrics        %s://%s/metrics%n", http, main);
        System.out.printf("  cluster        %d%n", facts.at("cluster").asInteger());
    }
}
