package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.infinispan.Cache;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;
import org.testng.annotations.AfterClass;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.Test;

/**
 * A JVM with a cache on flash is killed again and again, at a place that a seed chooses ({@code
 * entresol.seed}, printed): every put that it reported is there, and no removal that it reported is
 * undone.
 */
@Test(groups = "unit", testName = "infinispan.CacheKillTest")
public class CacheKillTest {
    private static final int ROUNDS = Integer.getInteger("entresol.kill.rounds", 5);
    private static final long SEED = Long.getLong("entresol.seed", 42);
    private static final int KEYS = 100;

    private String folder;

    @BeforeClass(alwaysRun = true)
    protected void makeFolder() {
        folder = CommonsTestingUtil.tmpDirectory(getClass());
        Util.recursiveFileRemove(folder);
    }

    @AfterClass(alwaysRun = true)
    protected void removeFolder() {
        Util.recursiveFileRemove(folder);
    }

    public void acknowledgedChangesOfACacheSurviveTheDeathOfItsJvm() throws Exception {
        System.out.println("kills: " + ROUNDS + " rounds, -Dentresol.seed=" + SEED);
        Random random = new Random(SEED);
        int last = 0;
        for (int round = 0; round < ROUNDS; round++) {
            int acknowledged = runAndKill(last, 1 + random.nextInt(30));
            assertTrue(acknowledged > last, "round " + round + " acknowledged nothing");
            try (DefaultCacheManager manager = manager(folder)) {
                last = check(manager.getCache("flash"), acknowledged, round);
            }
        }
    }

    /** Every key has the number that was acknowledged, or the one that was being put. */
    private static int check(Cache<String, String> cache, int acknowledged, int round) {
        for (int key = 0; key < KEYS; key++) {
            String at = "round " + round + ", key " + key + ", acknowledged " + acknowledged;
            String found = cache.get("key " + key);
            boolean is = present(key, acknowledged) ? value(key, acknowledged).equals(found)
                    : found == null;
            boolean next = present(key, acknowledged + 1)
                    ? value(key, acknowledged + 1).equals(found) : found == null;
            assertTrue(is || next, at + ": found " + found);
        }
        long there = cache.entrySet().stream().count();
        assertEquals(cache.size(), there);
        return acknowledged;
    }

    /** In every number a third of the keys is removed. */
    private static boolean present(int key, int number) {
        return (key + number) % 3 != 0;
    }

    private static String value(int key, int number) {
        return number + " " + new Random(key * 31L + number).nextLong() + "x".repeat(500);
    }

    private static DefaultCacheManager manager(String folder) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.memory().maxCount(10).persistence()
                .addStore(EntresolStoreConfigurationBuilder.class)
                .path(folder).capacity("64MiB").memory("64MiB").durability("process");
        DefaultCacheManager manager = new DefaultCacheManager();
        manager.defineConfiguration("flash", builder.build());
        return manager;
    }

    /** The last number that the child said all keys have, before it was killed. */
    private int runAndKill(int from, int after) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + File.separator + "bin/java");
        for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (flag.startsWith("-Dentresol.heap.native=jni") || flag.contains("native-access")) {
                command.add(flag);
            }
        }
        String path = System.getProperty(
                "surefire.test.class.path", System.getProperty("java.class.path"));
        command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path,
                Child.class.getName(), folder, "" + from));
        Process child = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        int acknowledged = 0;
        try (BufferedReader lines = new BufferedReader(
                new InputStreamReader(child.getInputStream(), StandardCharsets.UTF_8))) {
            int seen = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith("acknowledged ")) {
                    acknowledged = Integer.parseInt(line.substring(13));
                    seen++;
                }
                if (seen == after) {
                    // The handle leaves the pipe open: what was said before counts.
                    child.toHandle().destroyForcibly();
                }
            }
        }
        child.waitFor();
        return acknowledged;
    }

    /** Changes all keys to the next number, says so, and goes on until it is killed. */
    static final class Child {
        private Child() {
        }

        public static void main(String[] arguments) {
            Cache<String, String> cache = manager(arguments[0]).getCache("flash");
            int number = Integer.parseInt(arguments[1]);
            while (true) {
                number++;
                for (int key = 0; key < KEYS; key++) {
                    if (present(key, number)) {
                        cache.put("key " + key, value(key, number));
                    } else {
                        cache.remove("key " + key);
                    }
                }
                System.out.println("acknowledged " + number);
            }
        }
    }
}
