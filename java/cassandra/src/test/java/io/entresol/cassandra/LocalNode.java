package io.entresol.cassandra;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.cql3.UntypedResultSet;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.service.CassandraDaemon;

/**
 * A Cassandra node in this JVM, which talks to nobody: one for all tests of the JVM, since a node
 * cannot be started twice in one.
 */
final class LocalNode {
    static final String KEYSPACE = "tests";
    private static final String YAML = """
            cluster_name: tests
            num_tokens: 1
            authenticator: AllowAllAuthenticator
            authorizer: AllowAllAuthorizer
            partitioner: org.apache.cassandra.dht.Murmur3Partitioner
            commitlog_sync: periodic
            commitlog_sync_period: 10000ms
            commitlog_segment_size: 8MiB
            seed_provider:
              - class_name: org.apache.cassandra.locator.SimpleSeedProvider
                parameters:
                  - seeds: "127.0.0.1:%1$d"
            listen_address: 127.0.0.1
            rpc_address: 127.0.0.1
            storage_port: %1$d
            start_native_transport: false
            endpoint_snitch: SimpleSnitch
            data_file_directories: [%2$s/data]
            commitlog_directory: %2$s/commitlog
            saved_caches_directory: %2$s/saved_caches
            hints_directory: %2$s/hints
            cdc_enabled: true
            cdc_raw_directory: %2$s/cdc
            disk_failure_policy: ignore
            commit_failure_policy: ignore
            auto_snapshot: false
            user_defined_functions_enabled: false
            materialized_views_enabled: true
            memtable:
              configurations:
                default:
                  class_name: SkipListMemtable
                absent:
                  class_name: io.entresol.cassandra.EntresolMemtable
                  parameters:
                    store_devices: %2$s/no folder/store
                entresol:
                  class_name: io.entresol.cassandra.EntresolMemtable
                  parameters:
                    store_devices: %2$s/store
                    store_capacity: 256MiB
                    store_memory: 64MiB
                    journal_size: 16MiB
                    pending_memory: 64KiB
                logged:
                  class_name: io.entresol.cassandra.EntresolMemtable
                  parameters:
                    store_devices: %2$s/logged
                    store_capacity: 128MiB
                    store_memory: 64MiB
                    journal_size: 16MiB
                    commit_log: write
            """;
    private static boolean started;

    private LocalNode() {
    }

    /** Starts the node unless it runs. */
    static synchronized void start() {
        if (started) {
            return;
        }
        started = true;
        try {
            Path folder = Path.of("target", "node").toAbsolutePath();
            remove(folder);
            Files.createDirectories(folder);
            System.setProperty("cassandra.clock", TestClock.class.getName());
            Path yaml = folder.resolve("cassandra.yaml");
            Files.writeString(yaml, YAML.formatted(freePort(), folder));
            System.setProperty("cassandra.config", yaml.toUri().toString());
            System.setProperty("cassandra.storagedir", folder.toString());
            System.setProperty("cassandra.ring_delay_ms", "100");
            System.setProperty("cassandra.skip_wait_for_gossip_to_settle", "0");
            System.setProperty("cassandra.superuser_setup_delay_ms", "0");
            System.setProperty("cassandra-foreground", "yes");
            new CassandraDaemon(true).activate();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
        execute("CREATE KEYSPACE " + KEYSPACE
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    }

    /** Executes a statement in the tests' keyspace; {@code %s} is its name. */
    static UntypedResultSet execute(String statement, Object... values) {
        return QueryProcessor.executeOnceInternal(statement.replace("%s", KEYSPACE), values);
    }

    static ColumnFamilyStore table(String name) {
        return Keyspace.open(KEYSPACE).getColumnFamilyStore(name);
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    /** Removes what the last run left. */
    private static void remove(Path folder) throws IOException {
        if (Files.exists(folder)) {
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        }
    }
}
