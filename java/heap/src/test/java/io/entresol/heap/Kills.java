package io.entresol.heap;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import java.util.function.LongSupplier;

/**
 * Programs that are killed again and again, {@code entresol.kill.rounds} times, at places that a
 * seed chooses ({@code entresol.seed}, printed).
 */
public final class Kills {
    private static final int ROUNDS = Integer.getInteger("entresol.kill.rounds", 5);
    private static final int LINES_MAX = 300;

    private final long seed;
    private final Random random;

    /** Rounds by that seed, unless another one is given. */
    public Kills(long seed) {
        this.seed = Long.getLong("entresol.seed", seed);
        this.random = new Random(this.seed);
        System.out.println("kills: " + ROUNDS + " rounds, -Dentresol.seed=" + this.seed);
    }

    /** What is done in a round. */
    public interface Round {
        /** Does it; {@code random} chooses. */
        void run(int round, Random random) throws Exception;
    }

    /** All rounds. */
    public void forEach(Round body) throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            body.run(round, random);
        }
    }

    /**
     * Runs a program that says the number of each transaction which it committed, and kills it;
     * {@code found} gives the number of the last one that is there afterwards. The program's
     * arguments are {@code path} and a seed.
     */
    public void everyCommittedIsFound(Class<?> program, String path, LongSupplier found)
            throws Exception {
        long[] last = {0};
        forEach((round, chosen) -> {
            long committed = Long.parseLong(after(1 + chosen.nextInt(LINES_MAX), 0,
                    program, path, String.valueOf(seed + round)));
            assertTrue(committed > last[0], "round " + round + " committed nothing");
            last[0] = found.getAsLong();
            assertTrue(last[0] >= committed, "round " + round + ": " + committed
                    + " transactions were acknowledged, " + last[0] + " are there");
        });
    }

    /**
     * Runs a program in a JVM like this one and kills it once it has said so many lines and a loop
     * went round {@code turns} times; the last line.
     */
    public static String after(int lines, int turns, Class<?> program, String... arguments)
            throws IOException, InterruptedException {
        List<String> command = ChildJvm.command(
                System.getProperty("entresol.heap.native", ""), List.of(), program, arguments);
        Process child = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String said = "";
        try (BufferedReader out = new BufferedReader(
                new InputStreamReader(child.getInputStream(), StandardCharsets.UTF_8))) {
            for (int line = 0; line < lines && said != null; line++) {
                said = out.readLine();
            }
            for (int turn = 0; turn < turns; turn++) {
                Thread.onSpinWait();
            }
            child.destroyForcibly();
        }
        child.waitFor();
        assertTrue(said != null, program.getName() + " ended before it was killed");
        return said;
    }
}
