package io.entresol.compare;

import com.sun.management.OperatingSystemMXBean;
import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import org.infinispan.Cache;
import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.IndexStartupMode;
import org.infinispan.configuration.cache.IndexStorage;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.context.Flag;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.query.Indexer;
import org.infinispan.query.core.stats.IndexStatistics;

/**
 * Entries a second that come into an index in memory, each way by turns in a process of its own:
 * from flash in the start of their cache, as in a grid; and from Java's heap, without a store, by
 * Infinispan's own mass indexer and by Lucene alone, with the same fields. Medians of the rounds.
 *
 * <pre>
 * Reindex FOLDER [ENTRIES [ROUNDS]]
 * </pre>
 */
public final class Reindex {
    private static final String CACHE = "orders";
    private static final int BATCH = 500;
    private static final String HEAP = "-Xmx3g";
    private static final double NANOS = 1e9;

    private enum Way { LOAD, FLASH, MASS_INDEXER, LUCENE }

    /** What a turn came to: entries a second, and microseconds of a processor for each. */
    private record Turn(double rate, double processor) {
        static Turn read(String line) {
            String[] words = line.split(" ");
            return new Turn(Double.parseDouble(words[0]), Double.parseDouble(words[1]));
        }
    }

    private Reindex() {}

    /** What the command line asks for; also a turn's own process. */
    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("--play")) {
            play(Way.valueOf(arguments[1]), Path.of(arguments[2]),
                    Integer.parseInt(arguments[3]));
            return;
        }
        Path folder = Path.of(arguments[0]);
        String entries = arguments.length > 1 ? arguments[1] : "1000000";
        int rounds = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 3;
        turn(Way.LOAD, folder, entries);
        Map<Way, List<Turn>> turns = new EnumMap<>(Way.class);
        for (int round = 0; round < rounds; round++) {
            for (Way way : List.of(Way.FLASH, Way.MASS_INDEXER, Way.LUCENE)) {
                turns.computeIfAbsent(way, any -> new ArrayList<>())
                        .add(turn(way, folder, entries));
            }
        }
        double rate = median(turns.get(Way.FLASH), Turn::rate);
        turns.forEach((way, each) -> System.out.printf(Locale.ROOT,
                "%-12s %,9.0f entries/s, %5.1f us of a processor each; flash is %.2f of it%n", way,
                median(each, Turn::rate), median(each, Turn::processor),
                rate / median(each, Turn::rate)));
    }

    private static double median(List<Turn> all, ToDoubleFunction<Turn> figure) {
        double[] sorted = all.stream().mapToDouble(figure).sorted().toArray();
        return sorted[sorted.length / 2];
    }

    private static Turn turn(Way way, Path folder, String entries)
            throws IOException, InterruptedException {
        Path log = folder.resolve(way + ".log");
        Process process = new ProcessBuilder(System.getProperty("java.home") + "/bin/java", HEAP,
                "-cp", System.getProperty("java.class.path"), Reindex.class.getName(), "--play",
                way.name(), folder.toString(), entries).redirectError(log.toFile()).start();
        try (BufferedReader said = new BufferedReader(
                new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            String last = said.lines().reduce((former, line) -> line).orElse("");
            if (process.waitFor() != 0) {
                throw new IOException(way + " failed: " + Files.readString(log));
            }
            return Turn.read(last);
        }
    }

    private static void play(Way way, Path folder, int entries) throws Exception {
        if (way == Way.LUCENE) {
            BareLucene lucene = new BareLucene(entries);
            measure(entries, lucene::index);
            return;
        }
        try (DefaultCacheManager manager = new DefaultCacheManager(container(folder).build())) {
            manager.defineConfiguration(CACHE, cache(way, entries));
            if (way == Way.FLASH) {
                measure(entries, () -> manager.getCache(CACHE));
            } else {
                Cache<String, Order> orders = manager.getCache(CACHE);
                load(orders, entries);
                measure(entries, () -> {
                    if (way == Way.MASS_INDEXER) {
                        Indexer.of(orders).run().toCompletableFuture().join();
                    }
                });
            }
            if (way != Way.LOAD) {
                requireAll(manager.getCache(CACHE), entries);
            }
        }
    }

    private static void measure(int entries, Runnable work) {
        OperatingSystemMXBean system =
                (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long processor = system.getProcessCpuTime();
        long begun = System.nanoTime();
        work.run();
        double seconds = (System.nanoTime() - begun) / NANOS;
        System.out.println(entries / seconds + " "
                + (system.getProcessCpuTime() - processor) / 1e3 / entries);
    }

    private static void requireAll(Cache<String, Order> orders, int entries) {
        long found = ComponentRegistry.componentOf(orders, IndexStatistics.class)
                .computeIndexInfos().toCompletableFuture().join().get(Order.TYPE).count();
        if (found != entries) {
            throw new IllegalStateException("the index has " + found + " of " + entries);
        }
    }

    private static GlobalConfigurationBuilder container(Path folder) {
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder();
        global.serialization().addContextInitializer(new Order.Schema());
        global.globalState().enable().persistentLocation(folder.resolve("node").toString());
        return global;
    }

    /** As the grid deploys it; without a store where entries are in the heap. */
    private static Configuration cache(Way way, int entries) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.encoding().mediaType(MediaType.APPLICATION_PROTOSTREAM);
        builder.indexing().enable().storage(IndexStorage.LOCAL_HEAP)
                .startupMode(IndexStartupMode.NONE).addIndexedEntities(Order.TYPE)
                .writer().commitInterval(60_000).ramBufferSize(32);
        if (way != Way.MASS_INDEXER) {
            builder.memory().maxCount(1_000);
            builder.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                    .capacity(256 + entries / 500 + "MiB").memory("64MiB");
        }
        return builder.build();
    }

    /** Without an index. */
    private static void load(Cache<String, Order> orders, int entries) {
        Cache<String, Order> plain = orders.getAdvancedCache().withFlags(
                Flag.SKIP_INDEXING, Flag.IGNORE_RETURN_VALUES, Flag.SKIP_CACHE_LOAD);
        Map<String, Order> batch = new HashMap<>();
        for (int number = 0; number < entries; number++) {
            batch.put("k" + number, Order.of(number));
            if (batch.size() == BATCH || number == entries - 1) {
                plain.putAll(batch);
                batch.clear();
            }
        }
    }
}
