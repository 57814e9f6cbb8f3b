package io.entresol.jdbc.internal.server;

import com.google.common.collect.Sets;
import io.entresol.jdbc.internal.run.Clients;
import io.entresol.jdbc.internal.statement.RemoteCancel;
import io.entresol.jdbc.internal.statement.Served;
import io.entresol.jdbc.internal.statement.Timeout;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.avatica.AvaticaStatement;
import org.apache.calcite.avatica.MissingResultsException;
import org.apache.calcite.avatica.NoSuchStatementException;
import org.apache.calcite.avatica.jdbc.JdbcMeta;
import org.apache.calcite.avatica.proto.Requests;
import org.apache.calcite.avatica.remote.TypedValue;

/**
 * The connections of a {@link io.entresol.jdbc.SqlServer}'s clients. A statement lives as long as
 * its connection, and a connection until it is closed, or nobody used it or a statement of it for a
 * day; Avatica itself would drop both after minutes, a connection even while its statements are
 * used.
 */
public final class ServedMeta extends JdbcMeta {
    /** What a client may say of its connection: others name classes and files of the server. */
    private static final Set<String> CLIENTS_PROPERTIES = Set.of("keys", Timeout.PROPERTY);
    private static final int IDLE_HOURS = 24;
    private static final String EXPIRED = "the server has let go of the statement, as its "
            + "connection was not used for " + IDLE_HOURS + " hours, or there were too many; make "
            + "both anew";

    /** Numbers of the statements of each connection, which end with it. */
    private final Map<String, Set<Integer>> statements = new ConcurrentHashMap<>();

    private final Clients clients;

    public ServedMeta(String url, Clients clients) throws SQLException {
        super(url, settings());
        this.clients = clients;
    }

    private static Properties settings() {
        Properties settings = new Properties();
        String hours = String.valueOf(IDLE_HOURS);
        settings.setProperty(ConnectionCacheSettings.EXPIRY_DURATION.key(), hours);
        settings.setProperty(ConnectionCacheSettings.EXPIRY_UNIT.key(), TimeUnit.HOURS.name());
        settings.setProperty(StatementCacheSettings.EXPIRY_DURATION.key(), hours);
        settings.setProperty(StatementCacheSettings.EXPIRY_UNIT.key(), TimeUnit.HOURS.name());
        return settings;
    }

    @Override
    public void openConnection(ConnectionHandle connection, Map<String, String> given) {
        Map<String, String> kept = new HashMap<>(given == null ? Map.of() : given);
        kept.keySet().retainAll(CLIENTS_PROPERTIES);
        kept.put(Served.MARK, "true");
        super.openConnection(connection, kept);
        // Of connections that were let go nobody else tells.
        Sets.difference(statements.keySet(), getConnectionCache().asMap().keySet()).immutableCopy()
                .forEach(this::forget);
    }

    /** What its statements do ends first: who closes one waits for that. */
    @Override
    public void closeConnection(ConnectionHandle connection) {
        statements.getOrDefault(connection.id, Set.of()).forEach(clients::cancel);
        try {
            super.closeConnection(connection);
        } finally {
            forget(connection.id);
        }
    }

    /** Ends all connections, what their statements do first: who closes one waits for that. */
    public void close() throws SQLException {
        for (Connection each : getConnectionCache().asMap().values()) {
            for (AvaticaStatement statement : List.copyOf(
                    each.unwrap(AvaticaConnection.class).statementMap.values())) {
                if (!statement.isClosed()) {
                    statement.cancel();
                }
            }
        }
        getStatementCache().invalidateAll();
        getConnectionCache().invalidateAll();
    }

    private void forget(String connection) {
        Set<Integer> numbers = statements.remove(connection);
        if (numbers != null) {
            getStatementCache().invalidateAll(numbers);
            numbers.forEach(clients::forget);
        }
    }

    /** How many statements there are. */
    public int statements() {
        return (int) getStatementCache().size();
    }

    @Override
    public StatementHandle createStatement(ConnectionHandle connection) {
        return noted(super.createStatement(connection));
    }

    @Override
    public StatementHandle prepare(ConnectionHandle connection, String sql, long rows) {
        return noted(super.prepare(connection, sql, rows));
    }

    private StatementHandle noted(StatementHandle made) {
        statements.computeIfAbsent(made.connectionId, none -> ConcurrentHashMap.newKeySet())
                .add(made.id);
        return made;
    }

    /** What it does ends first: who closes it waits for that. */
    @Override
    public void closeStatement(StatementHandle statement) {
        clients.cancel(statement.id);
        super.closeStatement(statement);
        clients.forget(statement.id);
        Set<Integer> numbers = statements.get(statement.connectionId);
        if (numbers != null) {
            numbers.remove(statement.id);
        }
    }

    /** Notes that a statement is used, and with it its connection. */
    private void use(StatementHandle statement) {
        Clients.ask(statement.id);
        getConnectionCache().getIfPresent(statement.connectionId);
    }

    /** The same of one that is known here only. */
    private void demand(StatementHandle statement) {
        use(statement);
        if (getStatementCache().getIfPresent(statement.id) == null) {
            throw new IllegalStateException(EXPIRED);
        }
    }

    /** Whoever gave the SQL with it makes another one where there is none. */
    @Override
    public ExecuteResult prepareAndExecute(StatementHandle statement, String sql, long rows,
            int first, PrepareCallback callback) throws NoSuchStatementException {
        use(statement);
        Integer ended = RemoteCancel.number(sql);
        if (ended == null) {
            return super.prepareAndExecute(statement, sql, rows, first, callback);
        }
        if (statements.getOrDefault(statement.connectionId, Set.of()).contains(ended)) {
            clients.cancel(ended);
        }
        return super.prepareAndExecute(statement, RemoteCancel.NOTHING, rows, first, callback);
    }

    @Override
    public ExecuteBatchResult prepareAndExecuteBatch(StatementHandle statement,
            List<String> changes) throws NoSuchStatementException {
        use(statement);
        return super.prepareAndExecuteBatch(statement, changes);
    }

    @Override
    public ExecuteResult execute(StatementHandle statement, List<TypedValue> parameters,
            int first) throws NoSuchStatementException {
        demand(statement);
        return super.execute(statement, parameters, first);
    }

    @Override
    public ExecuteBatchResult executeBatchProtobuf(StatementHandle statement,
            List<Requests.UpdateBatch> batch) throws NoSuchStatementException {
        demand(statement);
        return super.executeBatchProtobuf(statement, batch);
    }

    @Override
    public Frame fetch(StatementHandle statement, long offset, int rows)
            throws NoSuchStatementException, MissingResultsException {
        demand(statement);
        clients.goOn(statement.id);
        return super.fetch(statement, offset, rows);
    }
}
