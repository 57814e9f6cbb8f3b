package io.entresol.jdbc.internal.run;

import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.calcite.avatica.AvaticaSqlException;

/**
 * The current run of a statement, if there is one. A cancellation ends this run and no later one. A
 * run is over when it has failed, has made its changes, or its result is closed, which may be after
 * the next run began.
 */
public final class Run {
    /** What all that reads looks at. */
    private final AtomicBoolean cancelled;
    private long number;
    /** Whether the statement is closed, and what it does ends for good. */
    private boolean over;

    public Run(AtomicBoolean cancelled) {
        this.cancelled = cancelled;
    }

    /** What a run does. */
    public interface Work<T> {
        T done() throws SQLException;
    }

    public <T> T of(Work<T> work) throws SQLException {
        begin();
        Clients.serve(this);
        try {
            return work.done();
        } catch (AvaticaSqlException failure) {
            throw RemoteFailure.of(failure);
        }
    }

    private synchronized void begin() {
        number++;
        cancelled.set(over);
    }

    /** Of the last run that began. */
    public synchronized long number() {
        return number;
    }

    /** A run is over. */
    public synchronized void end(long ended) {
        if (ended == number) {
            cancelled.set(over);
        }
    }

    /** The statement is closed, perhaps by another thread than the one that runs it. */
    public synchronized void close() {
        over = true;
        cancelled.set(true);
    }

    public void cancel() {
        cancelled.set(true);
    }

    /** Ends a run that is cancelled between two steps. */
    public void check() throws SQLException {
        if (cancelled.get()) {
            throw new SQLException("the statement was cancelled");
        }
    }
}
