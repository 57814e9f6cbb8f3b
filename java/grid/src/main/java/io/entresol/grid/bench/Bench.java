package io.entresol.grid.bench;

import io.entresol.grid.GridException;
import io.entresol.grid.Rest;
import io.entresol.grid.Table;
import io.entresol.grid.Target;
import io.entresol.grid.bench.Compared.Storage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import org.infinispan.commons.dataconversion.internal.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code entresol-grid bench}. */
@Command(name = "bench", mixinStandardHelpOptions = true,
        description = "Compares a cache in RAM with one on flash, and with Infinispan's own stores,"
                + " in the same minutes.",
        footer = {"", "Examples:", "  entresol-grid bench",
            "  entresol-grid bench --protocol resp --iterations 5000 --rounds 5",
            "  entresol-grid bench --stores ram,flash,floor",
            "  entresol-grid bench --stores flash,sifs,rocksdb --protocol hotrod",
            "  entresol-grid bench --workload bigmemory --writes 50 --json",
            "  entresol-grid bench --cache prices --execute write --show-rate 5"})
public final class Bench implements Callable<Integer> {
    private static final int RESP_ABOVE_MAIN = 6379 - 11222;
    /** Whether errors go to a terminal, as the script that starts this finds out. */
    private static final boolean PROGRESS = Boolean.getBoolean("entresol.progress");
    private static final String CLEAR_LINE = "\r\033[K";
    /** Rounds that warm, however short they are. */
    private static final long MOST_WARMING = 100;

    @Option(names = "--workload", paramLabel = "NAME", defaultValue = "tutorial",
            description = "tutorial: XAP MemoryXtend's, each thread writes, then reads keys of its"
                    + " own; bigmemory: nine reads to one write of any key, or --writes (${DEFAULT-VALUE})")
    private Workload workload;

    @Option(names = "--protocol", paramLabel = "NAME", split = ",", defaultValue = "hotrod,resp",
            description = "hotrod, resp (${DEFAULT-VALUE})")
    private List<Protocol> protocols;

    @Option(names = "--stores", paramLabel = "NAME", split = ",", defaultValue = "ram,flash",
            description = "what to compare: ram, flash, floor (a store that is a map in the heap:"
                    + " what Infinispan takes for any), sifs (its SoftIndexFileStore), rocksdb (its"
                    + " RocksDB store, where nodes have it) (${DEFAULT-VALUE})")
    private List<Storage> stores;

    @Option(names = "--threads", paramLabel = "N", defaultValue = "10",
            description = "clients at a time (${DEFAULT-VALUE})")
    private int threads;

    @Option(names = "--iterations", paramLabel = "N", defaultValue = "5000",
            description = "operations of each thread in a round (${DEFAULT-VALUE}; the tutorial:"
                    + " 200,000)")
    private int iterations;

    @Option(names = "--entries", paramLabel = "N", defaultValue = "50000",
            description = "entries of bigmemory (${DEFAULT-VALUE}; the source: 2,000,000,000)")
    private int entries;

    @Option(names = "--value-size", paramLabel = "BYTES",
            description = "length of a value (10000; bigmemory: 1700)")
    private Integer valueSize;

    @Option(names = "--writes", paramLabel = "PERCENT", defaultValue = "10",
            description = "share of writes in bigmemory's mix, and in that of --execute mix"
                    + " (${DEFAULT-VALUE})")
    private int writes;

    @Option(names = "--cache", paramLabel = "NAME", description = "measure a cache of your own,"
            + " which stays with its entries, in place of those that are deployed and dropped")
    private String cache;

    @Option(names = "--execute", paramLabel = "NAME", description = "what to do with --cache: write"
            + " (each thread its keys), read (what was written), mix (--entries, --writes)")
    private OwnCache.Work execute;

    @Option(names = "--show-rate", paramLabel = "SECONDS", defaultValue = "0",
            description = "each so many seconds print operations a second, mean and 99th percentile"
                    + " of their latencies, of that time (${DEFAULT-VALUE}: do not)")
    private int showRate;

    @Option(names = "--rounds", paramLabel = "N", defaultValue = "3", description = "rounds that"
            + " count; the stores take turns (${DEFAULT-VALUE})")
    private int rounds;

    @Option(names = "--warm-up", paramLabel = "N", defaultValue = "40000",
            description = "operations of each thread before the rounds that count, in 1 to 100"
                    + " rounds: a node that was just started spends most of its time on compiling"
                    + " (${DEFAULT-VALUE})")
    private int warmUp;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "42",
            description = "what keys and values follow from (${DEFAULT-VALUE})")
    private long seed;

    @Option(names = "--resp-port", paramLabel = "PORT",
            description = "the node's RESP port (as far from its main port as 6379 from 11222)")
    private Integer respPort;

    @Mixin
    private Target target;

    private enum Workload {
        TUTORIAL, BIGMEMORY
    }

    @Override
    public Integer call() {
        atLeast("--threads", threads, 1);
        atLeast("--iterations", iterations, 1);
        atLeast("--rounds", rounds, 1);
        atLeast("--warm-up", warmUp, 0);
        int size = valueSize != null ? valueSize : workload == Workload.TUTORIAL ? 10_000 : 1_700;
        atLeast("--value-size", size, Long.BYTES);
        if (writes < 0 || writes > 100) {
            throw new GridException("--writes is " + writes + "; expected 0 to 100");
        }
        atLeast("--show-rate", showRate, 0);
        if ((cache == null) != (execute == null)) {
            throw new GridException("--cache and --execute go together; say what to do with which"
                    + " cache: --cache NAME --execute write");
        }
        if (cache != null) {
            return new OwnCache(target, cache, execute, protocols.get(0), respPort()).measure(
                    new Load(threads, iterations, size, seed, showRate), entries, writes);
        }
        if (new HashSet<>(stores).size() < stores.size()) {
            throw new GridException("--stores is " + stores + "; expected each of them once");
        }
        Rest rest = target.rest();
        int nodes = rest.get("/v2/cluster/members").at("members").asJsonList().size();
        Json results = Json.object("workload", workload.name().toLowerCase(Locale.ROOT),
                "nodes", nodes, "threads", threads, "value_bytes", size, "rounds", rounds);
        for (Protocol protocol : protocols) {
            if (!target.json()) {
                System.out.printf("%s, %d node%s, %d threads, values of %,d B, medians of %d%n",
                        protocol.title(), nodes, nodes == 1 ? "" : "s", threads, size, rounds);
            }
            results.set(protocol.name().toLowerCase(Locale.ROOT), workload == Workload.TUTORIAL
                    ? tutorial(protocol, size) : bigMemory(protocol, size));
        }
        if (target.json()) {
            System.out.println(results);
        }
        return 0;
    }

    private Json tutorial(Protocol protocol, int size) {
        atLeast("--iterations", iterations, 1);
        Load load = new Load(threads, iterations, size, seed, showRate);
        Rounds writes = new Rounds();
        Rounds reads = new Rounds();
        try (Compared caches = deploy(protocol, (long) threads * iterations, size)) {
            for (int round = firstRound(2L * iterations); round <= rounds; round++) {
                for (Storage storage : order(round)) {
                    tell(protocol, round, storage);
                    writes.add(round, storage, load.write(caches.door(storage)));
                    reads.add(round, storage, load.read(caches.door(storage)));
                }
            }
        } finally {
            clear();
        }
        if (!target.json()) {
            Table table = new Table("test", "avg test time s", "avg TP per thread", "total TP",
                    "MB/s", "tutorial TP", "tutorial MB/s");
            for (Storage storage : stores) {
                writes.tutorialRow(table, "write, " + storage.title, storage, size,
                        storage.tutorialWrites, storage.tutorialWrittenMegabytes);
            }
            for (Storage storage : stores) {
                reads.tutorialRow(table, "read, " + storage.title, storage, size,
                        storage.tutorialReads, storage.tutorialReadMegabytes);
            }
            System.out.print(table);
            for (Storage other : writes.besideFlash()) {
                boolean ram = other == Storage.RAM;
                System.out.printf("flash / %s: write %.2f%s, read %.2f%s%n", other.title,
                        writes.ratio(other), ram ? " (tutorial 0.79)" : "",
                        reads.ratio(other), ram ? " (tutorial 0.44)" : "");
            }
            System.out.println();
        }
        return Json.object("write", writes.json(), "read", reads.json());
    }

    private Json bigMemory(Protocol protocol, int size) {
        atLeast("--entries", entries, threads);
        Load filling = new Load(threads, entries / threads, size, seed, showRate);
        long keys = (long) filling.perThread() * threads;
        Rounds loads = new Rounds();
        Rounds mixes = new Rounds();
        try (Compared caches = deploy(protocol, keys, size)) {
            for (int round = firstRound(filling.perThread() + (long) iterations); round <= rounds; round++) {
                Load mix = new Load(threads, iterations, size, seed + round, showRate);
                for (Storage storage : order(round)) {
                    tell(protocol, round, storage);
                    loads.add(round, storage, filling.write(caches.door(storage)));
                    mixes.add(round, storage, mix.mix(caches.door(storage), keys, writes));
                }
            }
        } finally {
            clear();
        }
        if (!target.json()) {
            Table table = new Table("test", "load op/s", "op/s", "read us", "write us");
            for (Storage storage : stores) {
                table.add(storage.title, Math.round(loads.median(storage).rate()),
                        Math.round(mixes.median(storage).rate()),
                        Math.round(mixes.median(storage).readMicros()),
                        Math.round(mixes.median(storage).writeMicros()));
            }
            table.add("BigMemory, 16 nodes, 1,600 threads", 64_000, 66_000, 25_000, 20_000);
            System.out.print(table);
            for (Storage other : loads.besideFlash()) {
                System.out.printf("flash / %s: load %.2f, %d %% writes %.2f%n",
                        other.title, loads.ratio(other), writes, mixes.ratio(other));
            }
            System.out.println();
        }
        return Json.object("entries", keys, "load", loads.json(), "mix", mixes.json());
    }

    private Compared deploy(Protocol protocol, long count, int size) {
        return new Compared(target, respPort(), protocol, stores, count, size);
    }

    private int respPort() {
        return respPort != null ? respPort : target.port() + RESP_ABOVE_MAIN;
    }

    /**
     * Rounds that count are numbered from one; those before them warm the nodes and the clients.
     *
     * @param operations of each thread in a round
     */
    private int firstRound(long operations) {
        long rounds = (warmUp + operations - 1) / operations;
        return (int) (1 - Math.max(1, Math.min(rounds, MOST_WARMING)));
    }

    /** What is at work, in one line of the terminal, if there is one. */
    private void tell(Protocol protocol, int round, Storage storage) {
        if (PROGRESS) {
            System.err.printf("\r%s, %s: %s\033[K", protocol.title(), storage.title, round < 1
                    ? "warms up, " + (1 - round) + " to go" : "round " + round + " of " + rounds);
        }
    }

    private static void clear() {
        if (PROGRESS) {
            System.err.print(CLEAR_LINE);
        }
    }

    /** None is always the first, so that none has all of what the first one warms. */
    private List<Storage> order(int round) {
        List<Storage> turned = new ArrayList<>(stores);
        Collections.rotate(turned, -round);
        return turned;
    }

    private static void atLeast(String option, int given, int least) {
        if (given < least) {
            throw new GridException(option + " is " + given + "; expected at least " + least);
        }
    }

    /** The rounds of all caches at one thing. */
    private static final class Rounds {
        /** Those with a number above zero. */
        private final Map<Storage, List<Round>> counted = new EnumMap<>(Storage.class);

        void add(int number, Storage storage, Round round) {
            if (number > 0) {
                counted.computeIfAbsent(storage, none -> new ArrayList<>()).add(round);
            }
        }

        Round median(Storage storage) {
            return Round.median(counted.get(storage));
        }

        /** What flash is compared with; nothing if it was left out. */
        List<Storage> besideFlash() {
            return !counted.containsKey(Storage.FLASH) ? List.of() : counted.keySet().stream()
                    .filter(storage -> storage != Storage.FLASH).toList();
        }

        double ratio(Storage other) {
            return Round.median(counted.get(Storage.FLASH), Round::rate)
                    / Round.median(counted.get(other), Round::rate);
        }

        void tutorialRow(Table table, String name, Storage storage, int size, String operations,
                String megabytes) {
            Round round = median(storage);
            table.add(name, String.format(Locale.ROOT, "%.2f", round.threadSeconds()),
                    Math.round(round.threadRate()), Math.round(round.rate()),
                    String.format(Locale.ROOT, "%.1f", round.megabytes(size)), operations,
                    megabytes);
        }

        Json json() {
            Json json = Json.object();
            besideFlash().forEach(other ->
                    json.set("flash_to_" + other.option(), ratio(other)));
            counted.forEach((storage, rounds) -> json.set(storage.option(),
                    Json.object("median", median(storage).json(),
                            "rounds", Json.make(rounds.stream().map(Round::json).toList()))));
            return json;
        }
    }
}
