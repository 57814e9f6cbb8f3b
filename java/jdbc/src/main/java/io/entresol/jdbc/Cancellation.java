package io.entresol.jdbc;

import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.calcite.DataContext;

/** Whether somebody cancelled a run of a statement, for what takes long in it. */
final class Cancellation {
    private final AtomicBoolean flag;

    Cancellation(AtomicBoolean flag) {
        this.flag = flag;
    }

    static Cancellation of(DataContext run) {
        AtomicBoolean flag = DataContext.Variable.CANCEL_FLAG.get(run);
        return new Cancellation(flag == null ? new AtomicBoolean() : flag);
    }

    /** Ends a statement that is cancelled. */
    void check() {
        if (flag.get()) {
            throw new CancellationException("the statement was cancelled");
        }
    }
}
