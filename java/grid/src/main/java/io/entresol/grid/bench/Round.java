package io.entresol.grid.bench;

import java.util.Comparator;
import java.util.List;
import java.util.function.ToDoubleFunction;
import org.infinispan.commons.dataconversion.internal.Json;

/**
 * The result of one run of a load.
 *
 * @param operations number of operations of all threads
 * @param seconds from the first thread's start to the last one's end
 * @param threadSeconds a thread's own time, on average
 * @param threadRate operations a second of a thread, on average
 * @param readMicros mean time of a read; 0: there was none
 * @param writeMicros mean time of a write; 0: there was none
 */
record Round(long operations, double seconds, double threadSeconds, double threadRate,
        double readMicros, double writeMicros) {
    /** What one thread did. */
    static final class Share {
        private long reads;
        private long readNanos;
        private long writes;
        private long writeNanos;
        private long nanos;
        private final Meter meter;

        /** Of a load that a meter shows; null: none does. */
        Share(Meter meter) {
            this.meter = meter;
        }

        void read(long took) {
            reads++;
            readNanos += took;
            note(took);
        }

        void wrote(long took) {
            writes++;
            writeNanos += took;
            note(took);
        }

        private void note(long took) {
            if (meter != null) {
                meter.note(took);
            }
        }

        Share took(long all) {
            nanos = all;
            return this;
        }
    }

    static Round of(List<Share> shares, long nanos) {
        long reads = shares.stream().mapToLong(share -> share.reads).sum();
        long writes = shares.stream().mapToLong(share -> share.writes).sum();
        double readNanos = shares.stream().mapToDouble(share -> share.readNanos).sum();
        double writeNanos = shares.stream().mapToDouble(share -> share.writeNanos).sum();
        return new Round(reads + writes, nanos / 1e9,
                shares.stream().mapToDouble(share -> share.nanos / 1e9).average().orElse(0),
                shares.stream().mapToDouble(
                        share -> (share.reads + share.writes) * 1e9 / share.nanos)
                        .average().orElse(0),
                reads == 0 ? 0 : readNanos / 1e3 / reads,
                writes == 0 ? 0 : writeNanos / 1e3 / writes);
    }

    double rate() {
        return operations / seconds;
    }

    /** MiB of values a second, which the source calls MB. */
    double megabytes(int valueBytes) {
        return rate() * valueBytes / (1 << 20);
    }

    Json json() {
        return Json.object("operations", operations, "seconds", seconds, "ops_per_second", rate(),
                "thread_seconds", threadSeconds, "thread_ops_per_second", threadRate,
                "read_us_mean", readMicros, "write_us_mean", writeMicros);
    }

    /** The middle one by rate. */
    static Round median(List<Round> rounds) {
        return rounds.stream().sorted(Comparator.comparingDouble(Round::rate)).toList()
                .get((rounds.size() - 1) / 2);
    }

    /** The median of something that each round has. */
    static double median(List<Round> rounds, ToDoubleFunction<Round> figure) {
        double[] sorted = rounds.stream().mapToDouble(figure).sorted().toArray();
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }
}
