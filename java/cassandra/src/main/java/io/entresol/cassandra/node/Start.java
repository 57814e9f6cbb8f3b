package io.entresol.cassandra.node;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/** {@code entresol-cassandra start}. */
final class Start {
    static final int MOST_NODES = 9;
    static final String HELP = """
            Usage: entresol-cassandra start [OPTIONS]
            Starts a Cassandra node on this machine, makes it before if there is none, and returns
            once it serves CQL. Tables WITH memtable = 'entresol' are on flash.

              --dir FOLDER     where the node keeps everything (entresol-cassandra)
              --nodes N        a cluster of so many nodes, for tests and trials, at 127.0.0.1,
                               127.0.0.2 and so on (1)
              --memory SIZE    memory of each node: a quarter for Java's heap, 384 MiB for Java
                               itself, the rest for the store (2g)
              --capacity SIZE  flash of each node's store (2GiB)
              --port N         the port for CQL (9042); those for other nodes (7000) and for
                               nodetool (7199) are moved as far

            All but --dir counts when the node is made. Later conf/cassandra.yaml and
            conf/jvm.options in the folder say it, which you may edit.
            """;
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    /** A node that says nothing for so long does not start any more. */
    private static final long PATIENCE_NANOS = TimeUnit.MINUTES.toNanos(5);

    private final Arguments arguments;
    private final Path folder;

    private Start(Arguments arguments) {
        this.arguments = arguments;
        folder = Path.of(arguments.value("--dir", NodeFolder.DEFAULT));
    }

    static int run(List<String> given) {
        return new Start(Arguments.parse("start", given,
                "--dir,--nodes,--memory,--capacity,--port", "").withoutWords()).start();
    }

    private int start() {
        List<NodeFolder> nodes = NodeFolder.nodes(folder);
        if (nodes.isEmpty()) {
            nodes = make();
        } else {
            checkUnchanged(nodes);
        }
        List<NodeProcess> started = new CopyOnWriteArrayList<>();
        AtomicBoolean done = new AtomicBoolean();
        Thread stopping = new Thread(() -> {
            if (!done.get()) {
                started.forEach(NodeProcess::end);
            }
        }, "stop");
        // A cluster starts whole or not at all.
        Runtime.getRuntime().addShutdownHook(stopping);
        start(nodes.subList(0, 1), started);
        // The others ask the first one who is there.
        await(started);
        start(nodes.subList(1, nodes.size()), started);
        await(started);
        done.set(true);
        nodes.forEach(Start::print);
        String where = arguments.value("--dir").map(dir -> " --dir " + dir).orElse("");
        System.out.println("ask with:  entresol-cassandra cql" + where);
        System.out.println("stop with: entresol-cassandra stop" + where);
        return 0;
    }

    private static void start(List<NodeFolder> nodes, List<NodeProcess> started) {
        for (NodeFolder node : nodes) {
            node.process().ifPresentOrElse(
                    running -> System.out.println("runs already, process " + running.pid()
                            + ": " + node.root()),
                    () -> started.add(NodeProcess.start(node)));
        }
    }

    private List<NodeFolder> make() {
        int count = arguments.number("--nodes", 1, MOST_NODES).orElse(1);
        int port = arguments.number("--port", Ports.LEAST, Ports.MOST).orElse(Ports.CQL);
        Memory memory = Memory.of("--memory", arguments.value("--memory", "2g"));
        long capacity = Memory.bytes("--capacity", arguments.value("--capacity", "2GiB"));
        List<NodePlan> plans = new ArrayList<>();
        for (int number = 1; number <= count; number++) {
            NodeFolder node = count == 1 ? new NodeFolder(folder) : NodeFolder.of(folder, number);
            Ports ports = Ports.of(number, port);
            ports.check();
            plans.add(new NodePlan(node, number, count, ports, memory, capacity));
        }
        plans.forEach(plan -> plan.folder().make(plan));
        return plans.stream().map(NodePlan::folder).toList();
    }

    /** What a user asks for must not be passed over in silence. */
    private void checkUnchanged(List<NodeFolder> nodes) {
        arguments.number("--nodes", 1, MOST_NODES).filter(count -> count != nodes.size())
                .ifPresent(count -> {
                    throw new NodeException("--nodes is " + count + ", and " + folder + " has "
                            + nodes.size() + "; leave it out, or name another folder: --dir");
                });
        NodeFolder first = nodes.get(0);
        arguments.number("--port", Ports.LEAST, Ports.MOST)
                .filter(port -> port != first.ports().cql()).ifPresent(port -> {
                    throw new NodeException("--port is " + port + ", and the node was made with "
                            + first.ports().cql() + "; leave it out, or edit " + first.yaml());
                });
        for (String option : List.of("--memory", "--capacity")) {
            if (arguments.value(option).isPresent()) {
                throw new NodeException(option + " counts when a node is made, and there is one in "
                        + folder + "; leave it out, and edit " + (option.equals("--memory")
                        ? first.options() + " (-Xmx) and " + first.yaml() + " (store_memory)"
                        : first.yaml() + " (store_capacity, of a store that is still to be made)"));
            }
        }
    }

    private static void await(List<NodeProcess> started) {
        List<NodeProcess> waiting = new ArrayList<>(started);
        long begin = System.nanoTime();
        long heard = begin;
        long said = 0;
        while (!waiting.isEmpty()) {
            LockSupport.parkNanos(LOOK_NANOS);
            waiting.removeIf(NodeProcess::serves);
            long now = System.nanoTime();
            long progress = started.stream().mapToLong(NodeProcess::progress).sum();
            if (progress != said) {
                said = progress;
                heard = now;
            }
            if (now - heard > PATIENCE_NANOS) {
                throw new NodeException("the node in " + waiting.get(0).folder.root()
                        + " says nothing more and does not serve. It is ended. Its last words:\n"
                        + waiting.get(0).lastWords());
            }
            show(started.size() - waiting.size(), started.size(),
                    TimeUnit.NANOSECONDS.toSeconds(now - begin));
        }
        if (Boolean.getBoolean("entresol.progress") && !started.isEmpty()) {
            System.err.print("\r\033[K");
        }
    }

    private static void show(int serving, int all, long seconds) {
        if (Boolean.getBoolean("entresol.progress")) {
            System.err.printf("\r%s, %d s", all == 1 ? "the node starts"
                    : serving + " of " + all + " nodes serve", seconds);
        }
    }

    private static void print(NodeFolder node) {
        Ports ports = node.ports();
        System.out.printf("the node in %s serves%n  CQL       %s:%d%n  nodetool  127.0.0.1:%d%n",
                node.root(), ports.address(), ports.cql(), ports.jmx());
    }
}
