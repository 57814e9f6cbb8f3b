package io.entresol.jdbc.internal.statement;

import io.entresol.jdbc.internal.dialect.Except;
import io.entresol.jdbc.internal.run.RemoteFailure;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Statement;
import java.util.Map;
import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.avatica.AvaticaSqlException;

/**
 * Gives the reason of a refusal. If a statement cannot be prepared, Calcite and Avatica name the
 * statement, and leave the reason in the cause of the exception. They refuse transactions by
 * exceptions that are not JDBC's, even a commit, which here has nothing to do.
 */
public final class Refusals {
    private Refusals() {}

    /** The same connection, whose refusals have their reason. */
    public static <C extends Connection> C told(Class<C> type, C connection) {
        return Except.of(type, connection, Map.of("prepareStatement", (arguments, plain) -> {
            try {
                return ResultFactory.ours(PreparedStatement.class,
                        (Statement) plain.result());
            } catch (SQLException failure) {
                throw told(arguments[0], failure);
            }
        }, "createStatement", (arguments, plain) ->
                ResultFactory.ours(Statement.class, (Statement) plain.result()),
                "commit", (none, plain) -> {
            Unfinished.commit(connection.unwrap(AvaticaConnection.class));
            return null;
        }, "setAutoCommit", (arguments, plain) -> {
            // A change of it commits.
            Unfinished.commit(connection.unwrap(AvaticaConnection.class));
            return plain.result();
        }, "rollback", (arguments, plain) -> {
            if (arguments != null && arguments.length > 0) {
                throw new SQLFeatureNotSupportedException("there are no savepoints");
            }
            Unfinished.rollback(connection.unwrap(AvaticaConnection.class));
            return null;
        }));
    }

    private static SQLException told(Object sql, SQLException failure) {
        if (failure instanceof AvaticaSqlException remote) {
            return RemoteFailure.of(remote);
        }
        return failure.getCause() == null ? failure
                : new SQLException("Error while preparing SQL \"" + sql + "\": "
                        + failure.getCause().getMessage(), failure);
    }
}
