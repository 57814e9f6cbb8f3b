package io.entresol.jdbc;

import java.net.InetAddress;
import java.sql.SQLException;
import java.util.List;
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
 * Serves the caches of a container to {@code jdbc:entresol:remote:http://HOST:PORT}. Whoever
 * reaches the port may read and write all of them: it listens on the loopback interface unless told
 * otherwise.
 */
public final class SqlServer implements AutoCloseable {
    private static final AtomicLong STARTED = new AtomicLong();

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

    /** Serves a container on a port of the interface that has the address. */
    public static SqlServer start(EmbeddedCacheManager manager, InetAddress address, int port)
            throws SQLException {
        String name = "sql-server-" + STARTED.incrementAndGet();
        Driver.register(name, manager);
        try {
            JdbcMeta meta = new JdbcMeta(Driver.PREFIX + "container=" + name);
            ServerCustomizer<Server> listen = server -> {
                for (Connector connector : server.getConnectors()) {
                    ((ServerConnector) connector).setHost(address.getHostAddress());
                }
            };
            HttpServer http = new HttpServer.Builder<Server>()
                    .withHandler(new LocalService(meta), Serialization.PROTOBUF)
                    .withPort(port)
                    .withServerCustomizers(List.of(listen), Server.class)
                    .build();
            http.start();
            return new SqlServer(name, http);
        } catch (SQLException | RuntimeException failure) {
            Driver.unregister(name);
            throw new SQLException("SQL cannot be served on " + address.getHostAddress() + ":"
                    + port + ": " + failure.getMessage(), failure);
        }
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
