package io.entresol.infinispan.recovery;

import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.context.Flag;
import org.infinispan.distribution.LocalizedCacheTopology;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachelistener.annotation.PartitionStatusChanged;
import org.infinispan.notifications.cachelistener.annotation.TopologyChanged;
import org.infinispan.notifications.cachelistener.event.Event;
import org.infinispan.partitionhandling.AvailabilityMode;
import org.infinispan.partitionhandling.PartitionHandling;

/**
 * A node of a cluster in a JVM of its own, which does what it reads and says when it is done.
 * Arguments: folder, name, JGroups' configuration, the time to wait for members, what then.
 */
final class GridNode {
    private static final int SEGMENTS = 32;
    private static final long RECHECK_MILLIS = 1_000;

    private final Cache<String, String> cache;
    private final Changes changes = new Changes();
    private volatile boolean loading;
    private Thread writer;

    private GridNode(Cache<String, String> cache) {
        this.cache = cache;
        cache.addListener(changes);
    }

    public static void main(String[] arguments) throws Exception {
        GlobalConfigurationBuilder global = GlobalConfigurationBuilder.defaultClusteredBuilder();
        global.transport().nodeName(arguments[1])
                .addProperty("configurationFile", arguments[2]);
        global.globalState().enable().persistentLocation(arguments[0]);
        DefaultCacheManager manager = new DefaultCacheManager(global.build());
        manager.defineConfiguration("grid", configuration(arguments[3], arguments[4]).build());
        say("view");
        try {
            GridNode node = new GridNode(manager.getCache("grid"));
            say("ready");
            node.obey();
        } catch (RuntimeException failure) {
            StringBuilder why = new StringBuilder();
            for (Throwable each = failure; each != null; each = each.getCause()) {
                why.append(' ').append(each.getMessage());
            }
            say("refused " + why.toString().replace('\n', ' '));
        }
        Runtime.getRuntime().halt(0);
    }

    private static ConfigurationBuilder configuration(String timeout, String missing) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.clustering().cacheMode(CacheMode.DIST_SYNC).hash().numOwners(2)
                .numSegments(SEGMENTS)
                .partitionHandling().whenSplit(PartitionHandling.DENY_READ_WRITES);
        builder.memory().maxCount(50).persistence()
                .addStore(EntresolStoreConfigurationBuilder.class)
                .capacity("64MiB").memory("32MiB").durability("process")
                .recovery("true").recoveryTimeout(timeout).recoveryMissing(missing);
        return builder;
    }

    private void obey() throws Exception {
        BufferedReader commands = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "put" -> change(words, true);
                case "remove" -> change(words, false);
                case "load" -> load(words[1], Long.parseLong(words[2]));
                case "rest" -> rest();
                case "set" -> cache.put(words[1], value(1));
                case "await" -> changes.await(() -> isWhole(Integer.parseInt(words[1])));
                case "degraded" -> changes.await(() -> cache.getAdvancedCache().getAvailability()
                        == AvailabilityMode.DEGRADED_MODE);
                case "dump" -> dump();
                default -> throw new IllegalArgumentException(line);
            }
            say("done");
        }
    }

    /** {@code put|remove FROM TO NUMBER}: keys of one range, for all nodes. */
    private void change(String[] words, boolean put) {
        for (int key = Integer.parseInt(words[1]); key < Integer.parseInt(words[2]); key++) {
            if (put) {
                cache.put("key-" + key, value(Integer.parseInt(words[3])));
            } else {
                cache.remove("key-" + key);
            }
        }
    }

    /** Changes keys of this node's own, one by one, and says so before and after each. */
    private void load(String prefix, long seed) {
        loading = true;
        Random random = new Random(seed);
        writer = new Thread(() -> {
            for (int number = 1; loading; number++) {
                String key = prefix + "-" + random.nextInt(200);
                say("try " + key + " " + number);
                try {
                    if (number % 5 == 0) {
                        cache.remove(key);
                    } else {
                        cache.put(key, value(number));
                    }
                } catch (RuntimeException failure) {
                    // Whether it happened is not known; nothing is tried on top of it.
                    say("failed " + failure.toString().replace('\n', ' '));
                    return;
                }
                say("ack " + key + " " + number);
            }
        });
        writer.start();
    }

    private void rest() throws InterruptedException {
        loading = false;
        writer.join();
    }

    private boolean isWhole(int members) {
        LocalizedCacheTopology topology =
                cache.getAdvancedCache().getDistributionManager().getCacheTopology();
        return cache.getAdvancedCache().getAvailability() == AvailabilityMode.AVAILABLE
                && topology.getMembers().size() == members && topology.getPendingCH() == null
                && topology.getCurrentCH().getMembers().size() == members;
    }

    private void dump() {
        AdvancedCache<String, String> advanced = cache.getAdvancedCache();
        for (String key : cache.keySet()) {
            String value = cache.get(key);
            say("value " + key + " " + (value == null ? "-1" : value.split(" ")[0]));
        }
        say("size " + cache.size());
        say("local " + advanced.withFlags(Flag.CACHE_MODE_LOCAL).size());
    }

    private static String value(int number) {
        return number + " " + "x".repeat(300);
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** Looks again whenever the cache's cluster changes. */
    @Listener
    public static final class Changes {
        /** What is waited for. */
        interface Condition {
            boolean holds();
        }

        @TopologyChanged
        @PartitionStatusChanged
        public synchronized void changed(Event<?, ?> event) {
            notifyAll();
        }

        synchronized void await(Condition condition) throws InterruptedException {
            while (!condition.holds()) {
                wait(RECHECK_MILLIS);
            }
        }
    }
}
