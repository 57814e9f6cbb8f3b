package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.heap.Durability;
import io.entresol.heap.HeapOptions;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A JVM that makes garbage and collects it is killed again and again while it collects, at a place
 * that a seed chooses ({@code entresol.seed}, printed): what the directory leads to is there each
 * time, and the next collection frees the rest.
 */
final class CollectKillTest {
    private static final int ROUNDS = Integer.getInteger("entresol.kill.rounds", 5);
    private static final long SEED = Long.getLong("entresol.seed", 44);
    private static final HeapOptions OPTIONS =
            HeapOptions.DEFAULT.durability(Durability.BUFFERED);
    private static final int LENGTH = 200;
    private static final int GARBAGE = 4000;

    @TempDir
    Path folder;

    @Test
    void aKillWhileGarbageIsCollectedDoesNoHarm() throws Exception {
        System.out.println("kills: " + ROUNDS + " rounds, -Dentresol.seed=" + SEED);
        String path = folder.resolve("heap").toString();
        try (ObjectHeap objects = ObjectHeap.create(path, 32L << 20, OPTIONS)) {
            chain(objects);
        }
        Random random = new Random(SEED);
        long garbage = 0;
        for (int round = 0; round < ROUNDS; round++) {
            runAndKill(path, 1 + random.nextInt(3), random.nextInt(200_000));
            try (ObjectHeap objects = ObjectHeap.open(path, OPTIONS)) {
                assertEquals(LENGTH, length(objects), "round " + round);
                Collected collected = objects.collect();
                garbage += collected.freedBlocks();
                assertEquals(LENGTH, length(objects), "round " + round);
                assertEquals(LENGTH, collected.keptObjects(), "round " + round);
                assertEquals("", objects.heap().check());
            }
        }
        assertTrue(garbage > 0, "no kill came before the end of a collection");
    }

    /** Kills the child some steps after it began its collection number {@code after}. */
    private static void runAndKill(String path, int after, int steps) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + File.separator + "bin/java");
        for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (flag.startsWith("-Dentresol.heap.native=jni") || flag.contains("native-access")) {
                command.add(flag);
            }
        }
        // Surefire may hand the class path over in a jar of its own.
        command.addAll(List.of("-cp", System.getProperty("surefire.test.class.path",
                System.getProperty("java.class.path")), Child.class.getName(), path));
        Process child = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (BufferedReader lines = new BufferedReader(
                new InputStreamReader(child.getInputStream(), StandardCharsets.US_ASCII))) {
            for (int line = 0; line < after; line++) {
                assertEquals("collect", lines.readLine());
            }
            for (int step = 0; step < steps; step++) {
                Thread.onSpinWait();
            }
            child.destroyForcibly();
        }
        child.waitFor();
    }

    private static void chain(ObjectHeap objects) {
        objects.run(() -> {
            Pair last = null;
            for (int index = 0; index < LENGTH; index++) {
                Pair pair = Pair.create(objects);
                pair.first(last);
                last = pair;
            }
            objects.directory().put("chain", last);
        });
    }

    private static int length(ObjectHeap objects) {
        int length = 0;
        Pair pair = objects.directory().get("chain", Pair.class);
        for (; pair != null; pair = pair.first()) {
            length++;
        }
        return length;
    }

    /** The program that is killed. */
    static final class Child {
        private Child() {
        }

        public static void main(String[] arguments) {
            ObjectHeap objects = ObjectHeap.open(arguments[0], OPTIONS);
            while (true) {
                for (int index = 0; index < GARBAGE; index++) {
                    PersistentTuple1.of(objects, "garbage " + index);
                }
                chain(objects);
                System.gc();
                System.out.println("collect");
                objects.collect();
            }
        }
    }
}
