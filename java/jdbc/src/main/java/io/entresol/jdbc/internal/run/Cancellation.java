package io.entresol.jdbc.internal.run;

import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import org.apache.calcite.DataContext;

/**
 * Tells long operations whether somebody cancelled their run of a statement, or whether the run
 * took too long.
 */
public final class Cancellation {
    private final AtomicBoolean flag;
    private final LongSupplier nanoseconds;
    private final long begun;
    /** Zero: it may take as long as it wants. */
    private final long most;

    /**
     * Of one run.
     *
     * @param flag set when it is cancelled
     * @param most nanoseconds that it may take from now on; zero: any
     * @param nanoseconds a clock
     */
    public Cancellation(AtomicBoolean flag, long most, LongSupplier nanoseconds) {
        this.flag = flag;
        this.nanoseconds = nanoseconds;
        this.begun = nanoseconds.getAsLong();
        this.most = most;
    }

    public static Cancellation of(DataContext run) {
        AtomicBoolean flag = DataContext.Variable.CANCEL_FLAG.get(run);
        return new Cancellation(flag == null ? new AtomicBoolean() : flag, left(run),
                System::nanoTime);
    }

    /** A statement reads more than one cache, and some of them later. */
    private static long left(DataContext run) {
        Long timeout = DataContext.Variable.TIMEOUT.get(run);
        Long begun = DataContext.Variable.UTC_TIMESTAMP.get(run);
        if (timeout == null) {
            return 0;
        }
        long spent = begun == null ? 0 : Math.max(0, System.currentTimeMillis() - begun);
        return Math.max(1, TimeUnit.MILLISECONDS.toNanos(timeout - spent));
    }

    /** Ends a statement that is cancelled, or took longer than its timeout. */
    public void check() {
        if (flag.get()) {
            throw new CancellationException("the statement was cancelled");
        } else if (most > 0 && nanoseconds.getAsLong() - begun >= most) {
            throw new CancellationException("the statement took longer than its timeout");
        }
    }
}
