package io.entresol.grid.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** The latencies that are shown while a load runs. */
class MeterTest {
    @Test
    void aLatencyIsShownAtMostAnEighthTooHigh() {
        for (long took = 1; took > 0 && took < Long.MAX_VALUE / 3; took = took * 3 / 2 + 1) {
            double limit = Meter.limit(Meter.bucket(took));
            assertTrue(limit > took, took + " is not below " + limit);
            assertTrue(took < 8 || limit <= took * 1.125 + 1, took + " is far below " + limit);
        }
    }

    @Test
    void onePercentOfTheOperationsMayTakeLongerThanThePercentile() {
        long[] counts = new long[Long.SIZE * 8];
        counts[Meter.bucket(1000)] = 99;
        counts[Meter.bucket(1_000_000)] = 1;
        assertEquals(Meter.limit(Meter.bucket(1000)), Meter.percentile(counts, 100));
        counts[Meter.bucket(1_000_000)] = 2;
        assertEquals(Meter.limit(Meter.bucket(1_000_000)), Meter.percentile(counts, 101));
    }
}
