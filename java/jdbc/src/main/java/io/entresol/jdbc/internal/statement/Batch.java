package io.entresol.jdbc.internal.statement;

import java.sql.BatchUpdateException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.calcite.avatica.AvaticaClientRuntimeException;
import org.apache.calcite.avatica.AvaticaSqlException;

/**
 * The changes of a batch, one after another, up to the first that fails. The failure carries the
 * number of rows that each earlier change changed. Avatica's protocol has no place for these
 * numbers but the traces of exceptions.
 */
final class Batch {
    private static final Pattern TOLD = Pattern.compile(
            Pattern.quote(Failure.class.getName()) + ": \\[([0-9, ]*)\\] ([^\\n]*)");

    private Batch() {}

    /** A change. */
    interface Change {
        long carryOut() throws SQLException;
    }

    /** Rows that each of them changed. */
    static long[] carryOut(List<Change> changes) throws BatchUpdateException {
        List<Long> counts = new ArrayList<>();
        for (Change change : changes) {
            try {
                counts.add(change.carryOut());
            } catch (SQLException | RuntimeException failure) {
                long[] done = counts.stream().mapToLong(Long::longValue).toArray();
                throw failed(done, failure.getMessage(), new Failure(done, failure));
            }
        }
        return counts.stream().mapToLong(Long::longValue).toArray();
    }

    private static BatchUpdateException failed(long[] done, String reason, Throwable cause) {
        String state = cause instanceof SQLException failure ? failure.getSQLState() : null;
        return new BatchUpdateException(reason, state, 0, done, cause);
    }

    /** Another node's batch. */
    static long[] sent(Sending batch) throws SQLException {
        try {
            return batch.counts();
        } catch (AvaticaSqlException failure) {
            throw told(failure.getStackTraces(), failure);
        } catch (AvaticaClientRuntimeException failure) {
            throw told(failure.getServerExceptions(), failure);
        } catch (RuntimeException failure) {
            throw failed(new long[0], failure.getMessage(), failure);
        }
    }

    /** Sends a batch. */
    interface Sending {
        long[] counts() throws SQLException;
    }

    private static SQLException told(List<String> traces, Exception failure) {
        for (String trace : traces) {
            Matcher told = TOLD.matcher(trace);
            if (told.find()) {
                String counts = told.group(1);
                return failed(counts.isEmpty() ? new long[0] : Arrays.stream(counts.split(", "))
                        .mapToLong(Long::parseLong).toArray(), told.group(2), failure);
            }
        }
        return failed(new long[0], failure.getMessage(), failure);
    }

    /** What a server's traces tell of a batch. */
    private static final class Failure extends Exception {
        private static final long serialVersionUID = 1;

        private final long[] done;

        Failure(long[] done, Exception cause) {
            super(cause.getMessage(), cause);
            this.done = done;
        }

        @Override
        public String toString() {
            return getClass().getName() + ": " + Arrays.toString(done) + " " + getMessage();
        }
    }
}
