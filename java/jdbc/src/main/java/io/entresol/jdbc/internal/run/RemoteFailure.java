package io.entresol.jdbc.internal.run;

import java.sql.SQLException;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.calcite.avatica.AvaticaSqlException;

/** What a server said of a run, once and without the names of its exceptions. */
public final class RemoteFailure {
    /** The exceptions that a trace begins with, by their whole names. */
    private static final Pattern NAMES = Pattern.compile("^(?:[\\w$]+(?:\\.[\\w$]+)+: )+");

    private RemoteFailure() {}

    public static SQLException of(AvaticaSqlException failure) {
        List<String> traces = failure.getStackTraces();
        String trace = traces.isEmpty() ? "" : traces.get(0);
        int end = trace.indexOf("\n\tat ");
        return end < 0 ? failure : new SQLException(
                NAMES.matcher(trace.substring(0, end)).replaceFirst(""), failure.getSQLState(),
                failure);
    }
}
