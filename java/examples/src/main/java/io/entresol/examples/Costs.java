package io.entresol.examples;

import com.sun.management.OperatingSystemMXBean;
import io.entresol.heap.HeapOptions;
import io.entresol.heap.Medium;
import io.entresol.heap.RadixTree;
import io.entresol.heap.Transaction;
import io.entresol.heap.TransactionalHeap;
import io.entresol.heap.TransactionalMemoryBlock;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.Locale;
import java.util.Random;
import java.util.SplittableRandom;

/**
 * Processor time of operations of a heap in Java, beside the figures of LLPL. It is the time of the
 * whole process, collector and compiler included, on a file of a memory file system, with each
 * transaction durable. LLPL's figures come from the same kind of machine, with stores and fences on
 * such a file, which is {@code bytes} here; {@code pages} writes a log and syncs it.
 *
 * <pre>
 * Costs [FOLDER [ENTRIES [bytes|pages]]]      (/dev/shm 1000000 bytes)
 * </pre>
 */
public final class Costs implements AutoCloseable {
    private static final long HEAP_BYTES = 768L << 20;
    private static final int BLOCK_BYTES = 64;
    private static final int BLOCKS = 1 << 14;
    private static final int TOGETHER = 10;
    private static final int WARM_ROUNDS = 3;
    private static final int ROUNDS = 11;
    /** The clock of a process counts in hundredths of a second: a round takes many. */
    private static final int TURNS = 1 << 18;
    private static final int GETS = 1 << 20;
    /** A chain of this many cache lines, 32 MiB, is beyond most caches. */
    private static final int PROBE_LINES = 1 << 19;
    private static final int INTS_IN_LINE = 16;

    private final Path file;
    private final TransactionalHeap heap;
    private final TransactionalMemoryBlock[] blocks = new TransactionalMemoryBlock[BLOCKS];
    private final byte[] content = new byte[BLOCK_BYTES];
    private final int[] chain = chain();
    private final OperatingSystemMXBean system =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private final SplittableRandom random = new SplittableRandom(7);
    private int place;
    private long sum;

    private Costs(Path folder, Medium medium) throws IOException {
        file = Files.createTempDirectory(folder, "entresol-costs").resolve("heap");
        HeapOptions options = HeapOptions.DEFAULT.medium(medium);
        heap = TransactionalHeap.createHeap(file.toString(), HEAP_BYTES, options);
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = heap.allocateMemoryBlock(BLOCK_BYTES);
        }
    }

    /** What the command line asks for. */
    public static void main(String[] arguments) throws IOException {
        Path folder = Path.of(arguments.length > 0 ? arguments[0] : "/dev/shm");
        int entries = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 1_000_000;
        String medium = arguments.length > 2 ? arguments[2] : "bytes";
        try (Costs costs = new Costs(folder, Medium.valueOf(medium.toUpperCase(Locale.ROOT)))) {
            System.out.println("Java " + Runtime.version().feature() + ", " + medium
                    + "; microseconds of the processor: median (least to most) of " + ROUNDS
                    + " rounds");
            costs.print("transaction of 64 B", 2.137, TURNS, costs::storeOne);
            costs.print("transaction of ten blocks of 64 B", 12.052, TURNS >> 2, costs::storeTen);
            costs.printMap(entries);
        }
    }

    @Override
    public void close() throws IOException {
        heap.close();
        Files.delete(file);
        Files.delete(file.getParent());
    }

    private void storeOne() {
        blocks[random.nextInt(BLOCKS)].copyFromArray(content, 0, 0, BLOCK_BYTES);
    }

    private void storeTen() {
        Transaction.create(heap, () -> {
            for (int i = 0; i < TOGETHER; i++) {
                storeOne();
            }
        });
    }

    private void printMap(int entries) {
        RadixTree map = RadixTree.create(heap);
        int[] next = {0};
        int inRound = entries / (WARM_ROUNDS + ROUNDS);
        print("put of a random key into an ordered map of up to " + entries, 9.550, inRound,
                () -> map.put(key(next[0]++), 1, 0));
        int held = next[0];
        print("get of a random key from an ordered map of " + held, 0.645, GETS,
                () -> sum += map.get(key(random.nextInt(held)), 0));
    }

    private void print(String what, double llpl, int turns, Runnable turn) {
        double[] micros = new double[ROUNDS];
        double[] probes = new double[ROUNDS];
        for (int round = -WARM_ROUNDS; round < ROUNDS; round++) {
            double taken = processorTime(turns, turn);
            double probe = processorTime(GETS, () -> place = chain[place]);
            if (round >= 0) {
                micros[round] = taken;
                probes[round] = probe;
            }
        }
        Arrays.sort(micros);
        Arrays.sort(probes);
        double median = micros[ROUNDS / 2];
        System.out.printf("%-62s %.2f (%.2f to %.2f), LLPL %.2f, ratio %.2f; a miss of the cache"
                + " beside it %.3f%n", what, median, micros[0], micros[ROUNDS - 1], llpl,
                median / llpl, probes[ROUNDS / 2]);
    }

    /** Microseconds of one turn. */
    private double processorTime(int turns, Runnable turn) {
        long before = system.getProcessCpuTime();
        for (int i = 0; i < turns; i++) {
            turn.run();
        }
        return (system.getProcessCpuTime() - before) / 1000.0 / turns;
    }

    /** Keys in no order, all different: the finaliser of SplitMix64 is a permutation. */
    private static byte[] key(long number) {
        long v = number + 1;
        v = (v ^ v >>> 30) * 0xBF58476D1CE4E5B9L;
        v = (v ^ v >>> 27) * 0x94D049BB133111EBL;
        return ByteBuffer.allocate(Long.BYTES).putLong(v ^ v >>> 31).array();
    }

    /** Each line names the next one; all are on one ring. */
    private static int[] chain() {
        Integer[] order = new Integer[PROBE_LINES];
        Arrays.setAll(order, i -> i);
        Collections.shuffle(Arrays.asList(order), new Random(5));
        int[] chain = new int[PROBE_LINES * INTS_IN_LINE];
        for (int i = 0; i < PROBE_LINES; i++) {
            int next = order[(i + 1) % PROBE_LINES];
            chain[order[i] * INTS_IN_LINE] = next * INTS_IN_LINE;
        }
        return chain;
    }
}
