package io.entresol.jdbc;

import java.net.InetAddress;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.calcite.avatica.jdbc.JdbcMeta;
import org.apache.calcite.avatica.remote.Driver.Serialization;
import org.apache.calcite.avatica.remote.LocalService;
import org.apache.calcite.avatica.server.HttpServer;
import org.apache.calcite.avatica.server.ServerCustomizer;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.infinispan.manager.EmbeddedCacheManager;

/**
 * Serves the caches of a container to {@code jdbc:entresol:remote:http://HOST:PORT}. Whoever it lets
 * in may read and write all of them; where nobody is asked for a password these are all who reach
 * the port, and it listens on the loopback interface unless told otherwise.
 */
public final class SqlServer implements AutoCloseable {
    private static final AtomicLong STARTED = new AtomicLong();
    /** What a client may say of its connection: others name classes and files of the server. */
    private static final Set<String> CLIENTS_PROPERTIES = Set.of("keys", Driver.TIMEOUT);

    /** Who is let in. */
    public interface Users {
        /** Whether there is such a user with this password. */
        boolean know(String name, String password);
    }

    private final String name;
    private final HttpServer http;

    private SqlServer(String name, HttpServer http) {
        this.name = name;
        this.http = http;
    }

    /** Serves a container on a port of the loopback interface; 0: any that is free. */
    public static SqlServer start(EmbeddedCacheManager manager, int port) throws SQLException {
        return start(manager, InetAddress.getLoopbackAddress(), port);
    }

    /** Serves a container on a port of the interface that has the address, to anybody. */
    public static SqlServer start(EmbeddedCacheManager manager, InetAddress address, int port)
            throws SQLException {
        return start(manager, address, port, null);
    }

    /** The same, to users who give their names and passwords; null: to anybody. */
    public static SqlServer start(EmbeddedCacheManager manager, InetAddress address, int port,
            Users users) throws SQLException {
        String name = "sql-server-" + STARTED.incrementAndGet();
        Driver.register(name, manager);
        try {
            List<ServerCustomizer<Server>> changes = new ArrayList<>();
            changes.add(server -> {
                for (Connector connector : server.getConnectors()) {
                    ((ServerConnector) connector).setHost(address.getHostAddress());
                }
            });
            if (users != null) {
                changes.add(server -> server.insertHandler(Login.of(users)));
            }
            HttpServer http = new HttpServer.Builder<Server>()
                    .withHandler(new LocalService(meta(name)), Serialization.PROTOBUF)
                    .withPort(port)
                    .withServerCustomizers(changes, Server.class)
                    .build();
            http.start();
            return new SqlServer(name, http);
        } catch (SQLException | RuntimeException failure) {
            Driver.unregister(name);
            throw new SQLException("SQL cannot be served on " + address.getHostAddress() + ":"
                    + port + ": " + failure.getMessage(), failure);
        }
    }

    private static JdbcMeta meta(String name) throws SQLException {
        return new JdbcMeta(Driver.PREFIX + "container=" + name) {
            @Override
            public void openConnection(ConnectionHandle connection, Map<String, String> given) {
                Map<String, String> kept = new HashMap<>(given == null ? Map.of() : given);
                kept.keySet().retainAll(CLIENTS_PROPERTIES);
                kept.put(Served.MARK, "true");
                super.openConnection(connection, kept);
            }
        };
    }

    /** The port that it listens on. */
    public int port() {
        return http.getPort();
    }

    @Override
    public void close() {
        http.stop();
        Driver.unregister(name);
    }
}
