package io.entresol.jdbc;

import io.entresol.jdbc.internal.run.Clients;
import io.entresol.jdbc.internal.server.Login;
import io.entresol.jdbc.internal.server.Pages;
import io.entresol.jdbc.internal.server.ServedMeta;
import java.net.InetAddress;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.security.auth.Subject;
import org.apache.calcite.avatica.remote.Driver.Serialization;
import org.apache.calcite.avatica.remote.LocalService;
import org.apache.calcite.avatica.server.HttpServer;
import org.apache.calcite.avatica.server.ServerCustomizer;
import org.eclipse.jetty.server.ConnectionFactory;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.infinispan.manager.EmbeddedCacheManager;

/**
 * Serves the caches of a container to {@code jdbc:entresol:remote:http://HOST:PORT}. A client that
 * it lets in may read and write all of them, unless they ask for permissions. Without users these
 * are all clients that reach the port; the server listens on the loopback interface unless told
 * otherwise.
 */
public final class SqlServer implements AutoCloseable {
    private static final AtomicLong STARTED = new AtomicLong();

    /** Who is let in. */
    public interface Users {
        /** Whether there is such a user with this password. */
        boolean know(String name, String password);

        /**
         * The user, as the caches of a container ask whether somebody may read or write; null: not
         * let in.
         */
        default Subject login(String name, String password) {
            return know(name, password) ? new Subject() : null;
        }
    }

    /** What browsers are shown on the port; clients of SQL ask for nothing by GET. */
    public interface Site {
        /**
         * The answer to a GET, with the parameters of its query; empty: there is none. A
         * {@link SecurityException}: the user may not see it.
         */
        Optional<Page> page(String path, Map<String, String> parameters);
    }

    /**
     * An answer of a {@link Site}.
     *
     * @param type its type of media
     * @param headers further headers
     * @param body its text
     */
    public record Page(String type, Map<String, String> headers, String body) {
    }

    /**
     * What clients meet at the port.
     *
     * @param users who is let in; null: anybody
     * @param tls the server's end of TLS; null: the port speaks plain HTTP
     * @param demanded what TLS demands of clients; null: nothing
     */
    public record Access(Users users, SSLContext tls, SSLParameters demanded) {
        void prepare(Server server) {
            if (tls != null) {
                SslContextFactory.Server encrypted = new SslContextFactory.Server();
                encrypted.setSslContext(tls);
                encrypted.setNeedClientAuth(demanded != null && demanded.getNeedClientAuth());
                for (Connector each : server.getConnectors()) {
                    ServerConnector connector = (ServerConnector) each;
                    SslConnectionFactory first = new SslConnectionFactory(encrypted,
                            connector.getDefaultProtocol());
                    List<ConnectionFactory> all = new ArrayList<>(List.of(first));
                    all.addAll(connector.getConnectionFactories());
                    connector.setConnectionFactories(all);
                    connector.setDefaultProtocol(first.getProtocol());
                }
            }
            if (users != null) {
                server.insertHandler(Login.asUser());
                server.insertHandler(Login.of(users::login));
            }
        }
    }

    private final String name;
    private final ServedMeta meta;
    private final HttpServer http;
    private final Clients clients;

    private SqlServer(String name, ServedMeta meta, HttpServer http, Clients clients) {
        this.name = name;
        this.meta = meta;
        this.http = http;
        this.clients = clients;
    }

    /** Serves a container on a port of the loopback interface; 0: any that is free. */
    public static SqlServer start(EmbeddedCacheManager manager, int port) throws SQLException {
        return start(manager, InetAddress.getLoopbackAddress(), port);
    }

    /** Serves a container on a port of the interface that has the address, to anybody. */
    public static SqlServer start(EmbeddedCacheManager manager, InetAddress address, int port)
            throws SQLException {
        return start(manager, address, port, (Users) null);
    }

    /** The same, to users who give their names and passwords; null: to anybody. */
    public static SqlServer start(EmbeddedCacheManager manager, InetAddress address, int port,
            Users users) throws SQLException {
        return start(manager, address, port, new Access(users, null, null), null);
    }

    /** The same, to whom the access lets in, with pages for them; null: there are none. */
    public static SqlServer start(EmbeddedCacheManager manager, InetAddress address, int port,
            Access access, Site site) throws SQLException {
        String name = "sql-server-" + STARTED.incrementAndGet();
        Driver.register(name, manager);
        Clients clients = new Clients();
        try {
            List<ServerCustomizer<Server>> changes = new ArrayList<>();
            changes.add(server -> {
                for (Connector connector : server.getConnectors()) {
                    ((ServerConnector) connector).setHost(address.getHostAddress());
                }
            });
            changes.add(server -> server.insertHandler(clients.handler()));
            if (site != null) {
                changes.add(server -> server.insertHandler(new Pages((path, parameters) ->
                        site.page(path, parameters).map(page -> new Pages.Found(page.type(),
                                page.headers(), page.body())))));
            }
            changes.add(access::prepare);
            ServedMeta meta = new ServedMeta(Driver.PREFIX + "container=" + name, clients);
            HttpServer http = new HttpServer.Builder<Server>()
                    .withHandler(new LocalService(meta), Serialization.PROTOBUF)
                    .withPort(port)
                    .withServerCustomizers(changes, Server.class)
                    .build();
            http.start();
            return new SqlServer(name, meta, http, clients);
        } catch (SQLException | RuntimeException failure) {
            clients.close();
            Driver.unregister(name);
            throw new SQLException("SQL cannot be served on " + address.getHostAddress() + ":"
                    + port + ": " + failure.getMessage(), failure);
        }
    }

    /** The connections of its clients. */
    ServedMeta meta() {
        return meta;
    }

    /** Those whose requests it answers. */
    Clients clients() {
        return clients;
    }

    /** The port that it listens on. */
    public int port() {
        return http.getPort();
    }

    @Override
    public void close() {
        http.stop();
        try {
            meta.close();
        } catch (SQLException failure) {
            throw new IllegalStateException("the connections of clients do not end: "
                    + failure.getMessage(), failure);
        } finally {
            clients.close();
            Driver.unregister(name);
        }
    }
}
