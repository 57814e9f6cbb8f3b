package io.entresol.grid.bench;

import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;

/** Figures of a running load: a line every few seconds, each for the time since the line before. */
final class Meter implements AutoCloseable {
    private static final int DIGITS = 2;
    private static final double PERCENT = 99;

    private final String name;
    private final long seconds;
    private final Recorder latencies = new Recorder(DIGITS);
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
        latencies.recordValue(took);
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
        Histogram all = latencies.getIntervalHistogram();
        if (all.getTotalCount() > 0) {
            System.err.printf(Locale.ROOT, "%8.1f s  %s: %,.0f op/s, mean %,.0f us, p99 %,.0f us%n",
                    since / 1e9, name, all.getTotalCount() * 1e9 / interval, all.getMean() / 1e3,
                    all.getValueAtPercentile(PERCENT) / 1e3);
        }
    }
}
