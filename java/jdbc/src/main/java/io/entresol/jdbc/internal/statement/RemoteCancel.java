package io.entresol.jdbc.internal.statement;

import java.sql.SQLException;
import java.sql.Statement;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.calcite.avatica.AvaticaStatement;

/**
 * Ends the run of a statement at a server. Avatica's protocol has no message for this, so another
 * statement of the connection, which is not SQL, says it.
 */
public final class RemoteCancel {
    /** What is carried out in its place, so that it has a result. */
    public static final String NOTHING = "values (0)";
    private static final String WORDS = "{entresol cancel ";
    private static final Pattern TOLD = Pattern.compile(Pattern.quote(WORDS) + "([0-9]{1,9})}");

    private RemoteCancel() {}

    /** Tells the server of a remote connection. */
    static void of(AvaticaStatement statement) throws SQLException {
        try (Statement telling = statement.connection.createStatement()) {
            telling.execute(WORDS + statement.handle.id + "}");
        }
    }

    /** The number of the statement that is to end; null: it is another statement. */
    public static Integer number(String sql) {
        Matcher told = TOLD.matcher(sql);
        return told.matches() ? Integer.valueOf(told.group(1)) : null;
    }
}
