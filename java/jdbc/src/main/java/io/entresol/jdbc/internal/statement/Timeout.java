package io.entresol.jdbc.internal.statement;

import java.sql.SQLException;
import java.util.Properties;

/** How long the statements of a connection may take, unless they are given another time. */
public final class Timeout {
    /** The property of a connection. */
    public static final String PROPERTY = "timeout";

    private Timeout() {}

    /** Seconds that each statement of a connection may take; zero: any. */
    public static int of(Properties properties) throws SQLException {
        String text = properties.getProperty(PROPERTY, "0").strip();
        if (!text.matches("[0-9]{1,6}")) {
            throw new SQLException("timeout=" + text + ": expected seconds, such as timeout=30");
        }
        return Integer.parseInt(text);
    }
}
