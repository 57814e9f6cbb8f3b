package io.entresol.infinispan.recovery;

import io.entresol.infinispan.BlockingCalls;
import io.entresol.infinispan.EntresolStore;
import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.container.entries.InternalCacheEntry;
import org.infinispan.context.Flag;
import org.infinispan.distribution.DistributionInfo;
import org.infinispan.distribution.LocalizedCacheTopology;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.lifecycle.ComponentStatus;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachelistener.annotation.PartitionStatusChanged;
import org.infinispan.notifications.cachelistener.annotation.TopologyChanged;
import org.infinispan.notifications.cachelistener.event.Event;
import org.infinispan.notifications.cachemanagerlistener.annotation.CacheStopped;
import org.infinispan.notifications.cachemanagerlistener.event.CacheStoppedEvent;
import org.infinispan.partitionhandling.AvailabilityMode;
import org.infinispan.partitionhandling.PartitionHandling;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.test.TestingUtil;
import org.infinispan.topology.LocalTopologyManager;
import org.infinispan.topology.MissingMembersException;

/**
 * A node of a cluster in a JVM of its own, which carries out the commands that it reads, and
 * reports when they are done. Arguments: folder, name, JGroups' configuration, the time to wait for
 * members, what then; whether the cluster recovers, bytes of values, capacity of the store.
 */
final class GridNode {
    static final String LOOKS = "entresol.grid.blocking-calls";
    /** Whether nodes look for calls that block; their starts then take twice as long. */
    static final boolean BLOCKING_CALLS = Boolean.getBoolean(LOOKS);

    private static final int SEGMENTS = 32;
    private static final int AVAILABILITY_MILLIS = 500;
    private static final int AT_A_TIME = 16;
    private static final long RECHECK_MILLIS = 1_000;
    /**
     * Parts of what is said of changes that have to be asked for again: the node that they met was
     * just stopping; Infinispan met itself while entries moved (docs/internals/grid-recovery.md).
     */
    private static final List<String> ASK_AGAIN = List.of("ISPN000324", "Recursive update");

    private final Cache<String, String> cache;
    private final String filler;
    private final Changes changes = new Changes();
    private volatile boolean loading;
    private Thread writer;

    private GridNode(Cache<String, String> cache, int valueBytes) {
        this.cache = cache;
        this.filler = "x".repeat(valueBytes);
        cache.addListener(changes);
        cache.getCacheManager().addListener(changes);
    }

    public static void main(String[] arguments) throws Exception {
        if (BLOCKING_CALLS) {
            BlockingCalls.find(found -> {
                found.printStackTrace();
                Runtime.getRuntime().halt(1);
            });
        }
        GlobalConfigurationBuilder global = GlobalConfigurationBuilder.defaultClusteredBuilder();
        global.transport().nodeName(arguments[1])
                .addProperty("configurationFile", arguments[2]);
        global.globalState().enable().persistentLocation(arguments[0]);
        DefaultCacheManager manager = new DefaultCacheManager(global.build());
        manager.defineConfiguration("grid", configuration(arguments).build());
        say("view");
        try {
            GridNode node = new GridNode(
                    manager.getCache("grid"), Integer.parseInt(arguments[6]));
            say("ready");
            node.obey();
        } catch (RuntimeException failure) {
            say("refused " + sentences(failure));
        }
        Runtime.getRuntime().halt(0);
    }

    private static ConfigurationBuilder configuration(String[] arguments) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.clustering().cacheMode(CacheMode.DIST_SYNC).hash().numOwners(2)
                .numSegments(SEGMENTS)
                .partitionHandling().whenSplit(PartitionHandling.DENY_READ_WRITES);
        builder.memory().maxCount(50).persistence().availabilityInterval(AVAILABILITY_MILLIS)
                .addStore(EntresolStoreConfigurationBuilder.class)
                .capacity(arguments[7]).memory("32MiB").durability("process")
                .recovery(arguments[5]).recoveryTimeout(arguments[3])
                .recoveryMissing(arguments[4]);
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
                case "local" -> say("local " + cache.getAdvancedCache()
                        .withFlags(Flag.CACHE_MODE_LOCAL).size());
                case "get" -> get(words);
                case "where" -> where(words[1]);
                case "attempt" -> attempt(words);
                case "withdrawn" -> withdrawn();
                case "start" -> startAgain();
                default -> throw new IllegalArgumentException(line);
            }
            say("done");
        }
    }

    /** {@code put|remove FROM TO NUMBER}: keys of one range, for all nodes; several at a time. */
    private void change(String[] words, boolean put) {
        Deque<CompletableFuture<String>> begun = new ArrayDeque<>();
        for (int key = Integer.parseInt(words[1]); key < Integer.parseInt(words[2]); key++) {
            String name = "key-" + key;
            begun.add(repeated(() -> put
                    ? cache.putAsync(name, value(Integer.parseInt(words[3])))
                    : cache.removeAsync(name)));
            if (begun.size() == AT_A_TIME) {
                begun.remove().join();
            }
        }
        begun.forEach(CompletableFuture::join);
    }

    /** The value is the same each time: what was done in part is done whole by the last of them. */
    private static CompletableFuture<String> repeated(Supplier<CompletableFuture<String>> change) {
        return change.get().exceptionallyCompose(failure ->
                ASK_AGAIN.stream().anyMatch(sentences(failure)::contains) ? repeated(change)
                        : CompletableFuture.failedFuture(failure));
    }

    private void get(String[] words) {
        for (int key = Integer.parseInt(words[1]); key < Integer.parseInt(words[2]); key++) {
            String value = cache.get("key-" + key);
            say("got key-" + key + " " + (value == null ? "0" : value.split(" ")[0]));
        }
    }

    /** {@code attempt FROM TO NUMBER}: puts until one is refused, and says which were not. */
    private void attempt(String[] words) {
        for (int key = Integer.parseInt(words[1]); key < Integer.parseInt(words[2]); key++) {
            try {
                cache.put("key-" + key, value(Integer.parseInt(words[3])));
                say("put " + key);
            } catch (RuntimeException failure) {
                say("failed " + sentences(failure));
                return;
            }
        }
    }

    /** Waits until the cache is stopped here, and says why it is. */
    private void withdrawn() throws InterruptedException {
        changes.await(() -> cache.getStatus().isTerminated());
        say("withdrew " + Withdrawal.reason(cache.getCacheManager(), "grid").orElse("never"));
    }

    private void startAgain() {
        try {
            cache.start();
            cache.addListener(changes);
            say("started");
        } catch (RuntimeException failure) {
            say("start failed " + sentences(failure));
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
                    String value = number % 5 == 0 ? null : value(number);
                    repeated(() -> value == null ? cache.removeAsync(key)
                            : cache.putAsync(key, value)).join();
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
        if (cache.getStatus() != ComponentStatus.RUNNING) {
            // A degraded cache is started again by itself once its members are back.
            return false;
        }
        LocalizedCacheTopology topology =
                cache.getAdvancedCache().getDistributionManager().getCacheTopology();
        return cache.getAdvancedCache().getAvailability() == AvailabilityMode.AVAILABLE
                && topology.getMembers().size() == members && topology.getPendingCH() == null
                && topology.getCurrentCH().getMembers().size() == members && isStable();
    }

    /** Whether it answers other nodes, which it is told a moment after it has its topology. */
    private boolean isStable() {
        try {
            GlobalComponentRegistry.of(cache.getCacheManager())
                    .getComponent(LocalTopologyManager.class).assertTopologyStable(cache.getName());
            return true;
        } catch (MissingMembersException notYet) {
            return false;
        }
    }

    private void dump() {
        for (String key : cache.keySet()) {
            String value = cache.get(key);
            say("value " + key + " " + (value == null ? "-1" : value.split(" ")[0]));
        }
        say("size " + cache.size());
    }

    /** What this node itself has of a key, in memory and on flash. */
    private void where(String key) {
        DistributionInfo owners = cache.getAdvancedCache().getDistributionManager()
                .getCacheTopology().getDistribution(key);
        EntresolStore<String, String> store = TestingUtil.getFirstStore(cache);
        InternalCacheEntry<String, String> inMemory =
                cache.getAdvancedCache().getDataContainer().peek(key);
        MarshallableEntry<String, String> onFlash =
                store.load(owners.segmentId(), key).toCompletableFuture().join();
        say("where " + key + ": primary " + owners.isPrimary() + ", owner "
                + owners.isReadOwner() + ", in memory "
                + (inMemory == null ? "0" : first(inMemory.getValue())) + ", on flash "
                + (onFlash == null ? "0" : first(onFlash.getValue())));
    }

    private static String first(String value) {
        return value.split(" ")[0];
    }

    private String value(int number) {
        return number + " " + filler;
    }

    private static String sentences(Throwable failure) {
        StringBuilder why = new StringBuilder();
        for (Throwable each = failure; each != null; each = each.getCause()) {
            why.append(' ').append(each.getMessage());
        }
        return why.toString().replace('\n', ' ');
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

        @CacheStopped
        public synchronized void stopped(CacheStoppedEvent event) {
            notifyAll();
        }

        synchronized void await(Condition condition) throws InterruptedException {
            while (!condition.holds()) {
                wait(RECHECK_MILLIS);
            }
        }
    }
}
