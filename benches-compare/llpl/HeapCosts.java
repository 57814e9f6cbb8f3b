import com.intel.pmem.llpl.Transaction;
import com.intel.pmem.llpl.TransactionalHeap;
import com.intel.pmem.llpl.TransactionalMemoryBlock;
import com.intel.pmem.llpl.util.LongART;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * What operations of a heap take of the processor, written for LLPL, so that LLPL and the adapter
 * jar run the very same classes: whichever is on the class path. Prints a line for each operation,
 * its name, a tab and the median microseconds of the process over all rounds.
 *
 * <pre>
 * java -cp LLPL_OR_ADAPTER llpl/HeapCosts.java NEW_FILE [ENTRIES]
 * </pre>
 */
public final class HeapCosts {
    private static final long HEAP_BYTES = 1536L << 20;
    private static final int BLOCK_BYTES = 64;
    private static final int BLOCKS = 1 << 14;
    private static final int TOGETHER = 10;
    private static final int WARM_ROUNDS = 3;
    private static final int ROUNDS = 11;
    private static final int TURNS = 1 << 17;
    private static final int GETS = 1 << 20;

    private final TransactionalHeap heap;
    private final TransactionalMemoryBlock[] blocks = new TransactionalMemoryBlock[BLOCKS];
    private final byte[] content = new byte[BLOCK_BYTES];
    private final OperatingSystemMXBean system =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private final SplittableRandom random = new SplittableRandom(7);
    private int keys;
    private long sum;

    private HeapCosts(String file) {
        heap = TransactionalHeap.createHeap(file, HEAP_BYTES);
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = heap.allocateMemoryBlock(BLOCK_BYTES);
        }
    }

    /** A file that is not there yet, and how many entries the map gets. */
    public static void main(String[] arguments) {
        int entries = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 1_000_000;
        HeapCosts costs = new HeapCosts(arguments[0]);
        costs.print("transaction of 64 B", TURNS, costs::storeOne);
        costs.print("transaction of ten blocks of 64 B", TURNS / TOGETHER, costs::storeTen);
        costs.printMap(entries);
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
        LongART map = new LongART(heap);
        int inRound = entries / (WARM_ROUNDS + ROUNDS);
        print("put of a random key", inRound, () -> map.put(key(keys++), 1));
        print("get of a random key", GETS, () -> sum += map.get(key(random.nextInt(keys))));
        if (sum != (long) GETS * (WARM_ROUNDS + ROUNDS)) {
            throw new IllegalStateException("gets found " + sum + " of all keys");
        }
    }

    private void print(String what, int turns, Runnable turn) {
        double[] micros = new double[ROUNDS];
        for (int round = -WARM_ROUNDS; round < ROUNDS; round++) {
            long before = system.getProcessCpuTime();
            for (int i = 0; i < turns; i++) {
                turn.run();
            }
            double taken = (system.getProcessCpuTime() - before) / 1000.0 / turns;
            micros[Math.max(round, 0)] = taken;
        }
        Arrays.sort(micros);
        System.out.printf("%s\t%.3f%n", what, micros[ROUNDS / 2]);
    }

    /** Keys in no order, all different: the finaliser of SplitMix64 is a permutation. */
    private static byte[] key(long number) {
        long v = number + 1;
        v = (v ^ v >>> 30) * 0xBF58476D1CE4E5B9L;
        v = (v ^ v >>> 27) * 0x94D049BB133111EBL;
        return ByteBuffer.allocate(Long.BYTES).putLong(v ^ v >>> 31).array();
    }
}
