package io.entresol.grid;

import io.entresol.infinispan.EntresolStore;
import io.entresol.infinispan.StoreLatencies;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;

/** How long calls of a store took, since this was asked before. Thread-safe. */
final class Latencies implements StoreLatencies {
    /** Bounds of what is told apart: shorter ones count as the first, longer ones as the second. */
    private static final long SHORTEST_NANOS = 100;
    private static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final int DIGITS = 2;

    private final Recorder reads = recorder();
    private final Recorder writes = recorder();
    private Histogram lastReads;
    private Histogram lastWrites;

    /** Those of the stores that were asked for; one that is gone takes its own along. */
    static final class OfStores {
        private final Map<EntresolStore<?, ?>, Latencies> all = new WeakHashMap<>();

        /** Those of a store, which tells them from the first time on that they are asked for. */
        synchronized Latencies of(EntresolStore<?, ?> store) {
            return all.computeIfAbsent(store, known -> {
                Latencies latencies = new Latencies();
                known.tell(latencies);
                return latencies;
            });
        }
    }

    private static Recorder recorder() {
        return new Recorder(SHORTEST_NANOS, LONGEST_NANOS, DIGITS);
    }

    @Override
    public void read(long nanos) {
        reads.recordValue(Math.min(nanos, LONGEST_NANOS));
    }

    @Override
    public void write(long nanos) {
        writes.recordValue(Math.min(nanos, LONGEST_NANOS));
    }

    /** In the words of {@code entresol.h}; forgets them. */
    synchronized String taken() {
        lastReads = reads.getIntervalHistogram(lastReads);
        lastWrites = writes.getIntervalHistogram(lastWrites);
        return "{\"reads\":" + pairs(lastReads) + ",\"writes\":" + pairs(lastWrites) + "}";
    }

    private static String pairs(Histogram histogram) {
        return StreamSupport.stream(histogram.recordedValues().spliterator(), false)
                .map(value -> "[" + value.getValueIteratedTo() + ","
                        + value.getCountAtValueIteratedTo() + "]")
                .collect(Collectors.joining(",", "[", "]"));
    }
}
