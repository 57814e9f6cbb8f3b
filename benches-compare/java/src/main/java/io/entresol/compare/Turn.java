package io.entresol.compare;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.HdrHistogram.Histogram;
import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.context.Flag;
import org.infinispan.manager.DefaultCacheManager;

/**
 * One contestant's phases in a process of its own: each prints a line of its name, operations a
 * second, processor time and latencies in microseconds.
 */
final class Turn {
    private static final int THREADS = 10;
    private static final int WARM = 3;
    private static final int VALUE_BYTES = 1_700;
    private static final double NANOS = 1e9;

    private final int entries;
    private final double seconds;
    private final AdvancedCache<String, byte[]> reading;
    private final AdvancedCache<String, byte[]> writing;
    private final OperatingSystemMXBean system =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private Turn(Cache<String, byte[]> cache, int entries, double seconds) {
        this.entries = entries;
        this.seconds = seconds;
        reading = cache.getAdvancedCache();
        writing = reading.withFlags(Flag.IGNORE_RETURN_VALUES);
    }

    /** A thread's part of a phase: does its number-th operation, or says that it is at the end. */
    private interface Work {
        boolean operate(int thread, long number, SplittableRandom random);
    }

    static void play(Contestant contestant, Path folder, int entries, double seconds)
            throws Exception {
        long bytes = (long) entries * VALUE_BYTES;
        DefaultCacheManager manager = contestant.open(folder, bytes, entries / 10);
        try {
            Turn turn = new Turn(manager.getCache(Contestant.cache()), entries, seconds);
            turn.playAll(bytes);
        } finally {
            manager.stop();
        }
    }

    private void playAll(long bytes) throws Exception {
        int share = entries / THREADS;
        long written = writtenBytes();
        phase("load", Double.MAX_VALUE, (thread, number, random) -> {
            if (number >= share) {
                return false;
            }
            int key = (int) (thread * (long) share + number);
            writing.put(key(key), value(key, 0));
            return true;
        });
        System.out.printf(Locale.ROOT, "load written_per_byte %.2f%n",
                (writtenBytes() - written) / (double) bytes);
        Work read = (thread, number, random) -> {
            int key = random.nextInt(share * THREADS);
            byte[] found = reading.get(key(key));
            check(key, found);
            return true;
        };
        Work update = (thread, number, random) -> {
            // Keys of one's own: what is read back is known.
            int key = thread * share + random.nextInt(share);
            writing.put(key(key), value(key, number));
            return true;
        };
        // On two processors it takes so long until the compilers have come to what matters.
        phase("warm", WARM * seconds, read);
        phase("read", seconds, read);
        phase("warm", seconds, update);
        long before = writtenBytes();
        long operations = phase("update", seconds, update);
        System.out.printf(Locale.ROOT, "update written_per_byte %.2f%n",
                (writtenBytes() - before) / (double) (operations * VALUE_BYTES));
        phase("read-after", seconds / 2, read);
        System.out.printf("all resident_mib %d%n", status("VmRSS:") >> 10);
    }

    private long phase(String name, double limit, Work work) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        List<Future<Histogram>> parts = new ArrayList<>();
        long processor = system.getProcessCpuTime();
        long start = System.nanoTime();
        for (int thread = 0; thread < THREADS; thread++) {
            int mine = thread;
            parts.add(threads.submit(() -> run(mine, start, limit, work)));
        }
        Histogram all = new Histogram(3);
        try {
            for (Future<Histogram> part : parts) {
                all.add(part.get());
            }
        } catch (ExecutionException failure) {
            throw new IllegalStateException(name + " failed", failure.getCause());
        } finally {
            threads.shutdownNow();
        }
        double elapsed = (System.nanoTime() - start) / NANOS;
        double taken = (system.getProcessCpuTime() - processor) / 1e3;
        long count = all.getTotalCount();
        System.out.printf(Locale.ROOT, "%s rate %.0f%n%1$s cpu_us %.1f%n%1$s p50_us %.0f%n"
                + "%1$s p99_us %.0f%n", name, count / elapsed, taken / count,
                all.getValueAtPercentile(50) / 1e3, all.getValueAtPercentile(99) / 1e3);
        return count;
    }

    private static Histogram run(int thread, long start, double limit, Work work) {
        Histogram latencies = new Histogram(3);
        SplittableRandom random = new SplittableRandom(thread);
        long number = 0;
        long now = System.nanoTime();
        while ((now - start) / NANOS < limit && work.operate(thread, number, random)) {
            long then = System.nanoTime();
            latencies.recordValue(then - now);
            now = then;
            number++;
        }
        return latencies;
    }

    private static String key(int number) {
        return "key " + number;
    }

    /** Bytes that do not compress and say whose they are. */
    private static byte[] value(int key, long version) {
        ByteBuffer bytes = ByteBuffer.allocate(VALUE_BYTES).putInt(key).putLong(version);
        SplittableRandom random = new SplittableRandom(key * 31L + version);
        while (bytes.remaining() >= Long.BYTES) {
            bytes.putLong(random.nextLong());
        }
        return bytes.array();
    }

    private static void check(int key, byte[] found) {
        if (found == null) {
            throw new IllegalStateException("key " + key + " was put, and is not there");
        }
        ByteBuffer bytes = ByteBuffer.wrap(found);
        if (bytes.getInt() != key || !Arrays.equals(value(key, bytes.getLong()), found)) {
            throw new IllegalStateException("key " + key + " has another value");
        }
    }

    private static long writtenBytes() throws IOException {
        return field(Path.of("/proc/self/io"), "write_bytes:");
    }

    /** KiB. */
    private static long status(String name) throws IOException {
        return field(Path.of("/proc/self/status"), name);
    }

    private static long field(Path file, String name) throws IOException {
        for (String line : Files.readAllLines(file)) {
            if (line.startsWith(name)) {
                return Long.parseLong(line.substring(name.length()).replace("kB", "").trim());
            }
        }
        throw new IOException(file + " has no " + name);
    }
}
