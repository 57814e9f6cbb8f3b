package io.entresol.cassandra.node;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.QueryOptions;
import com.datastax.driver.core.SocketOptions;
import com.datastax.driver.core.policies.RoundRobinPolicy;
import com.datastax.driver.core.policies.WhiteListPolicy;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import javax.management.JMX;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

import io.entresol.cassandra.StoreMXBean;

/** Several nodes of one ring, each a process of its own, started by the program as people do. */
final class TestCluster implements AutoCloseable {
    private static final long LOOK_NANOS = 50_000_000;
    private static final int MOST_LOOKS = 2_400;
    private static final int READ_MILLISECONDS = 60_000;
    private static final long CAPACITY = 256L << 20;

    final Path folder;
    private final int port = TestNode.freePort();

    /** A ring in a folder below target/, which is emptied; nothing is started. */
    TestCluster(String name, int nodes) throws IOException {
        folder = Path.of("target", name).toAbsolutePath();
        TestNode.remove(folder);
        for (int number = 1; number <= nodes; number++) {
            make(number, nodes);
        }
    }

    /** Makes the configuration of a node that has its part of a ring of some size. */
    NodeFolder make(int number, int nodes) throws IOException {
        NodeFolder node = NodeFolder.of(folder, number);
        Ports ports = Ports.of(number, port);
        node.make(new NodePlan(node, number, nodes, ports, Memory.of("--memory", "1g"), CAPACITY));
        // A coordinator of a topology reads its own replica first; and nobody hands writes on.
        edit(number, "endpoint_snitch: SimpleSnitch", """
                endpoint_snitch: RackInferringSnitch
                dynamic_snitch: false
                hinted_handoff_enabled: false
                commitlog_segment_size: 8MiB""");
        addOption(number, "-XX:TieredStopAtLevel=1");
        addOption(number, "-Dcassandra.broadcast_interval_ms=2000");
        return node;
    }

    /** Makes a node that will take its part of a ring that is there. */
    NodeFolder makeJoining(int number) throws IOException {
        NodeFolder node = make(number, number);
        edit(number, "auto_bootstrap: false", "auto_bootstrap: true");
        // It must have learned the schema by then.
        addOption(number, "-Dcassandra.ring_delay_ms=5000");
        return node;
    }

    void edit(int number, String text, String by) throws IOException {
        TestNode.edit(node(number), text, by);
    }

    void addOption(int number, String option) throws IOException {
        TestNode.addOption(node(number), option);
    }

    NodeFolder node(int number) {
        return NodeFolder.of(folder, number);
    }

    /** Starts those nodes that do not run. */
    void start() throws Exception {
        run("start");
    }

    /** Cassandra's tool; what it said. */
    String nodetool(int number, String... words) throws Exception {
        int place = NodeFolder.nodes(folder).indexOf(node(number)) + 1;
        List<String> all = new ArrayList<>(List.of("nodetool", "--node", "" + place));
        all.addAll(Arrays.asList(words));
        return run(all.toArray(String[]::new));
    }

    private String run(String... arguments) throws Exception {
        return TestNode.run(folder, arguments);
    }

    /** A client that talks to one node alone; its caller closes it. */
    Cluster client(int number, ConsistencyLevel level) {
        InetSocketAddress address = new InetSocketAddress("127.0.0." + number, port);
        return Cluster.builder().addContactPointsWithPorts(address)
                .withLoadBalancingPolicy(
                        new WhiteListPolicy(new RoundRobinPolicy(), List.of(address)))
                .withQueryOptions(new QueryOptions().setConsistencyLevel(level))
                .withSocketOptions(new SocketOptions().setReadTimeoutMillis(READ_MILLISECONDS))
                .withoutMetrics().withoutJMXReporting().build();
    }

    /** What an action makes of a node's store. */
    <T> T ask(int number, Asked<T> action) throws Exception {
        int jmx = node(number).ports().jmx();
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(
                "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + jmx + "/jmxrmi"))) {
            return action.of(JMX.newMXBeanProxy(connector.getMBeanServerConnection(),
                    new ObjectName("io.entresol.cassandra:type=Store"), StoreMXBean.class));
        }
    }

    interface Asked<T> {
        T of(StoreMXBean store) throws Exception;
    }

    void kill(int number) {
        TestNode.kill(node(number));
    }

    /** Ends a node in order. */
    void stop(int number) {
        ProcessHandle process = node(number).process().orElseThrow();
        process.destroy();
        while (!NodeFolder.hasEnded(process)) {
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    /** Kills a node and takes its store, as if a device broke and was replaced. */
    void wipe(int number) throws IOException {
        TestNode.end(node(number));
        Files.delete(node(number).store());
    }

    /** Kills a node and all that it has. */
    void remove(int number) throws IOException {
        TestNode.end(node(number));
        TestNode.remove(node(number).root());
    }

    /** Waits until a node has no SSTable of a keyspace. */
    void awaitNoTable(int number, String keyspace) throws IOException {
        List<Path> left = tables(number, keyspace);
        for (int looks = 0; !left.isEmpty(); looks++) {
            assertEquals(true, looks < MOST_LOOKS, "SSTables of node " + number + ": " + left);
            LockSupport.parkNanos(LOOK_NANOS);
            left = tables(number, keyspace);
        }
    }

    /** The files of SSTables, without those of snapshots. */
    List<Path> tables(int number, String keyspace) throws IOException {
        Path data = node(number).root().resolve("data").resolve(keyspace);
        if (!Files.exists(data)) {
            return List.of();
        }
        try (Stream<Path> files = Files.walk(data)) {
            return files.filter(file -> file.toString().endsWith(".db")
                    && !file.toString().contains("/snapshots/")).toList();
        } catch (java.io.UncheckedIOException gone) {
            return List.of(data);
        }
    }

    @Override
    public void close() {
        NodeFolder.nodes(folder).forEach(TestNode::end);
    }
}
