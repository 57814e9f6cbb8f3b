package io.entresol.jdbc.internal.statement;

import io.entresol.jdbc.internal.run.Run;
import java.sql.BatchUpdateException;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.apache.calcite.avatica.AvaticaConnection;

/**
 * Connections that changed something since they were told to commit or to roll back, and that do
 * not commit each change by themselves: their changes cannot be undone, so a rollback must fail. If
 * nothing was changed, a rollback has nothing to undo.
 */
final class Unfinished {
    private static final Set<AvaticaConnection> CHANGED =
            Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));
    private static final Pattern PART = Pattern.compile("; [1-9][0-9]* other rows are changed");

    private Unfinished() {}

    /** Does what may change something; {@code changes} tells by its result whether it does. */
    static <T> T noted(AvaticaConnection connection, Predicate<T> changes, Run.Work<T> work)
            throws SQLException {
        try {
            T result = work.done();
            if (changes.test(result)) {
                changed(connection);
            }
            return result;
        } catch (SQLException failure) {
            boolean part = PART.matcher(String.valueOf(failure.getMessage())).find()
                    || failure instanceof BatchUpdateException batch
                    && batch.getLargeUpdateCounts().length > 0;
            if (part) {
                changed(connection);
            }
            throw failure;
        }
    }

    private static void changed(AvaticaConnection connection) throws SQLException {
        if (!connection.getAutoCommit()) {
            CHANGED.add(connection);
        }
    }

    /** What was changed stays. */
    static void commit(AvaticaConnection connection) {
        CHANGED.remove(connection);
    }

    /** Refused once if something was changed. */
    static void rollback(AvaticaConnection connection) throws SQLException {
        if (CHANGED.remove(connection)) {
            throw new SQLFeatureNotSupportedException("there are no transactions: each row is a "
                    + "change of its own, and those that were made since the last commit stay");
        }
    }
}
