package io.entresol.jdbc.internal.rows;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.jdbc.internal.run.Cancellation;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.apache.calcite.linq4j.Enumerator;
import org.apache.calcite.linq4j.Linq4j;
import org.junit.jupiter.api.Test;

/** How the rows of a statement end. */
class StepsTest {
    /** Counts to five, and how often it is ended. */
    private static final class Counted extends Steps<Object> {
        private int given;
        private int ended;

        @Override
        protected Object step() {
            return given < 5 ? given++ : null;
        }

        @Override
        protected void end() {
            ended++;
        }
    }

    private static Enumerator<Object> rows(Counted steps) {
        Iterable<Object> rows = () -> CacheQuery.mapped(steps, Function.identity(),
                new Cancellation(new AtomicBoolean(), 0, () -> 0));
        return Linq4j.asEnumerable(rows).enumerator();
    }

    @Test
    void whoClosesAStatementBeforeItsLastRowEndsTheReadingOnce() {
        Counted steps = new Counted();
        try (Enumerator<Object> rows = rows(steps)) {
            assertTrue(rows.moveNext());
            assertEquals(0, steps.ended);
        }
        assertEquals(1, steps.ended);
        assertFalse(steps.hasNext());
    }

    @Test
    void whoReadsAllRowsEndsTheReadingOnce() {
        Counted steps = new Counted();
        try (Enumerator<Object> rows = rows(steps)) {
            for (int row = 0; row < 5; row++) {
                assertTrue(rows.moveNext());
                assertEquals(row, rows.current());
            }
            assertFalse(rows.moveNext());
        }
        assertEquals(1, steps.ended);
    }

    @Test
    void aStatementMayTakeUpToItsTimeoutAndNoLonger() {
        AtomicLong clock = new AtomicLong(Long.MAX_VALUE - 5);
        Cancellation cancellation = new Cancellation(new AtomicBoolean(), 10, clock::get);
        cancellation.check();
        clock.addAndGet(9);
        cancellation.check();
        clock.addAndGet(1);
        assertThrows(CancellationException.class, cancellation::check);
    }
}
