package io.entresol.grid.bench;

import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;

/** Figures of a running load: a line every few seconds, each for the time since the line before. */
final class Meter implements AutoCloseable {
    /** Buckets for each doubling of a latency. */
    private static final int STEPS = 8;
    private static final double PERCENTILE = 0.99;

    private final String name;
    private final long seconds;
    private final AtomicLongArray buckets = new AtomicLongArray(Long.SIZE * STEPS);
    private final LongAdder nanos = new LongAdder();
    private final Thread printing;
    private final long begun = System.nanoTime();

    private Meter(String name, long seconds) {
        this.name = name;
        this.seconds = seconds;
        printing = new Thread(this::print, "shows the rate");
        printing.setDaemon(true);
        printing.start();
    }

    /** Shows a load of this name; null where nothing is to be shown. */
    static Meter show(String name, long seconds) {
        return seconds == 0 ? null : new Meter(name, seconds);
    }

    /** An operation took so long. */
    void note(long took) {
        buckets.incrementAndGet(bucket(took));
        nanos.add(took);
    }

    @Override
    public void close() {
        printing.interrupt();
        try {
            printing.join();
        } catch (InterruptedException ends) {
            Thread.currentThread().interrupt();
        }
    }

    private void print() {
        long last = begun;
        boolean ends = false;
        while (!ends) {
            try {
                TimeUnit.SECONDS.sleep(seconds);
            } catch (InterruptedException ended) {
                ends = true;
            }
            long now = System.nanoTime();
            line(now - begun, now - last);
            last = now;
        }
    }

    private void line(long since, long interval) {
        long[] counts = new long[buckets.length()];
        long count = 0;
        for (int at = 0; at < counts.length; at++) {
            counts[at] = buckets.getAndSet(at, 0);
            count += counts[at];
        }
        long spent = nanos.sumThenReset();
        if (count > 0) {
            System.err.printf(Locale.ROOT, "%8.1f s  %s: %,.0f op/s, mean %,.0f us, p99 %,.0f us%n",
                    since / 1e9, name, count * 1e9 / interval, spent / 1e3 / count,
                    percentile(counts, count) / 1e3);
        }
    }

    /** The end of the bucket that it is in: at most an eighth too high. */
    static double percentile(long[] counts, long count) {
        long below = 0;
        int at = -1;
        while (below < count * PERCENTILE) {
            below += counts[++at];
        }
        return limit(at);
    }

    static int bucket(long took) {
        long value = Math.max(STEPS, took);
        int power = Long.SIZE - 1 - Long.numberOfLeadingZeros(value);
        return power * STEPS + (int) (value >> power - 3 & STEPS - 1);
    }

    /** Above all latencies of the bucket. */
    static double limit(int bucket) {
        int power = bucket / STEPS;
        return Math.scalb(1.0 + (bucket % STEPS + 1) / (double) STEPS, power);
    }
}
