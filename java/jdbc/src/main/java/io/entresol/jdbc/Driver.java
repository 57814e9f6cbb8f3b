package io.entresol.jdbc;

import io.entresol.jdbc.internal.column.ColumnType;
import io.entresol.jdbc.internal.column.Keys;
import io.entresol.jdbc.internal.dialect.SqlTypes;
import io.entresol.jdbc.internal.plan.CacheSchema;
import io.entresol.jdbc.internal.plan.Preparation;
import io.entresol.jdbc.internal.rows.Container;
import io.entresol.jdbc.internal.statement.Refusals;
import io.entresol.jdbc.internal.statement.ResultFactory;
import io.entresol.jdbc.internal.statement.Timeout;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.WeakHashMap;
import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.avatica.AvaticaFactory;
import org.apache.calcite.avatica.AvaticaStatement;
import org.apache.calcite.avatica.ConnectStringParser;
import org.apache.calcite.avatica.DriverVersion;
import org.apache.calcite.avatica.Handler;
import org.apache.calcite.avatica.HandlerImpl;
import org.apache.calcite.avatica.InternalProperty;
import org.apache.calcite.avatica.util.Casing;
import org.apache.calcite.avatica.util.Quoting;
import org.apache.calcite.jdbc.CalciteConnection;
import org.apache.calcite.schema.SchemaPlus;
import org.infinispan.manager.EmbeddedCacheManager;

/**
 * SQL over the caches of an Infinispan container.
 *
 * <ul>
 *   <li>{@code jdbc:entresol:config=/etc/grid.xml}: the container of a configuration file, started
 *       in this process with the first connection and stopped with the last;
 *   <li>{@code jdbc:entresol:container=NAME}: a container that this program runs, see {@link
 *       #register};
 *   <li>{@code jdbc:entresol:remote:http://host:port}: the containers that an {@link SqlServer}
 *       serves, with {@code user} and {@code password} if it asks for them. By {@code https://},
 *       {@code tls-ca=FILE} names its authorities (PEM), else they are those that Java knows;
 *       {@code tls-cert=FILE;tls-key=FILE} are a certificate and its key to show.
 * </ul>
 *
 * Further parts follow after semicolons: {@code keys=cache:TYPE,cache:TYPE} names the SQL types of
 * caches' keys, otherwise the type of an existing key counts; {@code timeout=SECONDS} is the
 * timeout of statements until {@code setQueryTimeout} gives them another, which Avatica does not
 * pass on to a server.
 */
public final class Driver extends org.apache.calcite.jdbc.Driver {
    /** What every URL of this driver begins with. */
    public static final String PREFIX = "jdbc:entresol:";

    private static final String REMOTE = "remote:";
    private static final Driver DRIVER = new Driver();

    static {
        try {
            DriverManager.registerDriver(DRIVER);
        } catch (SQLException failure) {
            throw new IllegalStateException("the driver manager refuses the driver", failure);
        }
    }

    private final Map<Connection, EmbeddedCacheManager> started =
            Collections.synchronizedMap(new WeakHashMap<>());

    /** For the driver manager, which finds the driver by itself. */
    public Driver() {
        super(Preparation::new);
    }

    /** Makes a container of this process reachable as {@code jdbc:entresol:container=NAME}. */
    public static void register(String name, EmbeddedCacheManager manager) {
        Containers.register(name, manager);
    }

    /** Ends that; connections that are open go on. */
    public static void unregister(String name) {
        Containers.unregister(name);
    }

    /** A connection to a container of this process. */
    public static Connection connect(EmbeddedCacheManager manager) throws SQLException {
        return Refusals.told(CalciteConnection.class,
                DRIVER.connect(manager, new Properties()));
    }

    @Override
    public Connection connect(String url, Properties given) throws SQLException {
        if (!acceptsURL(url)) {
            return null;
        }
        String rest = url.substring(PREFIX.length());
        if (rest.startsWith(REMOTE)) {
            return remote(rest.substring(REMOTE.length()), given);
        }
        Properties properties = ConnectStringParser.parse(rest, given);
        String container = properties.getProperty("container");
        String file = properties.getProperty("config");
        if (container != null) {
            return Refusals.told(CalciteConnection.class,
                    connect(Containers.named(container), properties));
        } else if (file == null) {
            throw new SQLException("URL " + url + " names no container; expected " + PREFIX
                    + "config=FILE, " + PREFIX + "container=NAME or " + PREFIX
                    + "remote:http://HOST:PORT");
        }
        EmbeddedCacheManager manager = Containers.start(Path.of(file));
        try {
            CalciteConnection connection = connect(manager, properties);
            started.put(connection, manager);
            return Refusals.told(CalciteConnection.class, connection);
        } catch (SQLException | RuntimeException failure) {
            Containers.stop(manager);
            throw failure;
        }
    }

    private static Connection remote(String address, Properties given) throws SQLException {
        int end = address.indexOf(';');
        String server = end < 0 ? address : address.substring(0, end);
        String more = end < 0 ? "" : address.substring(end + 1);
        if (!server.startsWith("http://") && !server.startsWith("https://")) {
            throw new SQLException("address " + server + " of a server of SQL; expected "
                    + PREFIX + REMOTE + "http://HOST:PORT");
        }
        Properties properties = ConnectStringParser.parse(more, given);
        Timeout.of(properties);
        // Moments are in UTC, wherever the client is.
        properties.putIfAbsent("timeZone", "UTC");
        String user = properties.getProperty("user", "");
        if (!user.isEmpty()) {
            properties.setProperty("authentication", "BASIC");
            properties.setProperty("avatica_user", user);
            properties.setProperty("avatica_password", properties.getProperty("password", ""));
        }
        try (ClientStores stores = ClientStores.of(server, properties)) {
            FirstContact.make(server, stores.files());
            Connection connection = new Remote().connect(
                    "jdbc:avatica:remote:url=" + server + ";serialization=protobuf", properties);
            // Names are those of the server, which says nothing of what it does with them.
            connection.unwrap(AvaticaConnection.class).properties.putAll(Map.of(
                    InternalProperty.CASE_SENSITIVE, false,
                    InternalProperty.UNQUOTED_CASING, Casing.UNCHANGED,
                    InternalProperty.QUOTED_CASING, Casing.UNCHANGED,
                    InternalProperty.QUOTING, Quoting.DOUBLE_QUOTE));
            return Refusals.told(Connection.class, connection);
        } catch (IOException | RuntimeException failure) {
            throw new SQLException(reason(server, failure), failure);
        }
    }

    /** Avatica says no more of an answer than its status, and of none even less. */
    private static String reason(String server, Exception failure) {
        String said = String.valueOf(failure.getMessage());
        if (said.contains("HTTP/401") || said.contains("HTTP/403")) {
            return "the server of SQL at " + server + " lets in users only; name one that it knows"
                    + " and its password";
        }
        Throwable cause = failure;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return "the server of SQL at " + server + " cannot be asked: " + cause.getMessage();
    }

    private CalciteConnection connect(EmbeddedCacheManager manager, Properties given)
            throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("lex", "MYSQL_ANSI");
        properties.setProperty("timeZone", "UTC");
        properties.setProperty("fun", "standard,postgresql");
        properties.setProperty("typeSystem", SqlTypes.class.getName());
        properties.putAll(given);
        Map<String, ColumnType> keys = keys(properties.getProperty("keys", ""));
        Timeout.of(properties);
        CalciteConnection connection = super.connect(PREFIX, properties)
                .unwrap(CalciteConnection.class);
        SchemaPlus root = connection.getRootSchema();
        root.setCacheEnabled(false);
        root.add(CacheSchema.NAME, new CacheSchema(Container.of(manager, keys)));
        connection.setSchema(CacheSchema.NAME);
        // As each connection is at first, and as each change is made here.
        connection.setAutoCommit(true);
        return connection;
    }

    private static Map<String, ColumnType> keys(String text) throws SQLException {
        Map<String, ColumnType> keys = new HashMap<>();
        for (String each : text.isBlank() ? new String[0] : text.split(",")) {
            int colon = each.lastIndexOf(':');
            try {
                keys.put(each.substring(0, Math.max(colon, 0)).strip(),
                        Keys.parse(each.substring(colon + 1).strip()));
            } catch (IllegalArgumentException mistake) {
                throw new SQLException("keys=" + text + ": " + mistake.getMessage(), mistake);
            }
        }
        return keys;
    }

    @Override
    protected String getConnectStringPrefix() {
        return PREFIX;
    }

    @Override
    protected DriverVersion createDriverVersion() {
        return version();
    }

    private static DriverVersion version() {
        return new DriverVersion("Entresol JDBC Driver", "0.1.0", "Entresol", "0.1.0", true, 0, 1,
                0, 1);
    }

    /** They hold scans open, which the stores of a container would wait for. */
    private static void closeStatements(AvaticaConnection connection) {
        SQLException failure = null;
        for (AvaticaStatement each : List.copyOf(connection.statementMap.values())) {
            try {
                each.close();
            } catch (SQLException another) {
                failure = another;
            }
        }
        if (failure != null) {
            throw new IllegalStateException("a statement of the connection does not close: "
                    + failure.getMessage(), failure);
        }
    }

    @Override
    protected AvaticaFactory createFactory() {
        return new ResultFactory(super.createFactory());
    }

    @Override
    protected Handler createHandler() {
        return new HandlerImpl() {
            @Override
            public void onConnectionClose(AvaticaConnection connection) {
                try {
                    closeStatements(connection);
                } finally {
                    EmbeddedCacheManager manager = started.remove(connection);
                    if (manager != null) {
                        Containers.stop(manager);
                    }
                }
            }
        };
    }

    /** What connects to a {@link SqlServer}. */
    private static final class Remote extends org.apache.calcite.avatica.remote.Driver {
        @Override
        protected DriverVersion createDriverVersion() {
            return version();
        }

        @Override
        protected AvaticaFactory createFactory() {
            return new ResultFactory(super.createFactory());
        }
    }
}
