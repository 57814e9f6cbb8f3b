package io.entresol.grid.bench;

import io.entresol.grid.GridException;
import io.entresol.grid.Rest;
import io.entresol.grid.Table;
import io.entresol.grid.Target;
import io.entresol.grid.bench.Pair.Storage;
import java.util.ArrayList;
import java.util.EnumMap;
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
        description = "Compares a cache in RAM with one on flash, in the same minutes.",
        footer = {"", "Examples:", "  entresol-grid bench",
            "  entresol-grid bench --protocol resp --iterations 5000 --rounds 5",
            "  entresol-grid bench --workload bigmemory --json"})
public final class Bench implements Callable<Integer> {
    private static final int RESP_ABOVE_MAIN = 6379 - 11222;

    @Option(names = "--workload", paramLabel = "NAME", defaultValue = "tutorial",
            description = "tutorial: XAP MemoryXtend's, each thread writes, then reads keys of its"
                    + " own; bigmemory: nine reads to one write of any key (${DEFAULT-VALUE})")
    private Workload workload;

    @Option(names = "--protocol", paramLabel = "NAME", split = ",", defaultValue = "hotrod,resp",
            description = "hotrod, resp (${DEFAULT-VALUE})")
    private List<Protocol> protocols;

    @Option(names = "--threads", paramLabel = "N", defaultValue = "10",
            description = "clients at a time (${DEFAULT-VALUE})")
    private int threads;

    @Option(names = "--iterations", paramLabel = "N", defaultValue = "1000",
            description = "operations of each thread in a round (${DEFAULT-VALUE}; the tutorial:"
                    + " 200,000)")
    private int iterations;

    @Option(names = "--entries", paramLabel = "N", defaultValue = "50000",
            description = "entries of bigmemory (${DEFAULT-VALUE}; the source: 2,000,000,000)")
    private int entries;

    @Option(names = "--value-size", paramLabel = "BYTES",
            description = "length of a value (10000; bigmemory: 1700)")
    private Integer valueSize;

    @Option(names = "--rounds", paramLabel = "N", defaultValue = "3", description = "rounds that"
            + " count, after one that does not; RAM and flash take turns (${DEFAULT-VALUE})")
    private int rounds;

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
        int size = valueSize != null ? valueSize : workload == Workload.TUTORIAL ? 10_000 : 1_700;
        atLeast("--value-size", size, Long.BYTES);
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
        Load load = new Load(threads, iterations, size, seed);
        Rounds writes = new Rounds();
        Rounds reads = new Rounds();
        try (Pair pair = pair(protocol, (long) threads * iterations, size)) {
            for (int round = 0; round <= rounds; round++) {
                for (Storage storage : order(round)) {
                    writes.add(round, storage, load.write(pair.door(storage)));
                    reads.add(round, storage, load.read(pair.door(storage)));
                }
            }
        }
        if (!target.json()) {
            Table table = new Table("test", "avg test time s", "avg TP per thread", "total TP",
                    "MB/s", "tutorial TP", "tutorial MB/s");
            writes.tutorialRow(table, "write, RAM", Storage.RAM, size, "21,796", "207.9");
            writes.tutorialRow(table, "write, flash", Storage.FLASH, size, "17,185", "163.9");
            reads.tutorialRow(table, "read, RAM", Storage.RAM, size, "23,401", "223.2");
            reads.tutorialRow(table, "read, flash", Storage.FLASH, size, "10,279", "98.0");
            System.out.print(table);
            System.out.printf("flash / RAM: write %.2f (tutorial 0.79), read %.2f (tutorial 0.44)"
                    + "%n%n", writes.ratio(), reads.ratio());
        }
        return Json.object("write", writes.json(), "read", reads.json());
    }

    private Json bigMemory(Protocol protocol, int size) {
        atLeast("--entries", entries, threads);
        Load filling = new Load(threads, entries / threads, size, seed);
        long keys = (long) filling.perThread() * threads;
        Rounds loads = new Rounds();
        Rounds mixes = new Rounds();
        try (Pair pair = pair(protocol, keys, size)) {
            for (int round = 0; round <= rounds; round++) {
                Load mix = new Load(threads, iterations, size, seed + round);
                for (Storage storage : order(round)) {
                    loads.add(round, storage, filling.write(pair.door(storage)));
                    mixes.add(round, storage, mix.mix(pair.door(storage), keys));
                }
            }
        }
        if (!target.json()) {
            Table table = new Table("test", "load op/s", "op/s", "read us", "write us");
            for (Storage storage : Storage.values()) {
                table.add(storage.name(), Math.round(loads.median(storage).rate()),
                        Math.round(mixes.median(storage).rate()),
                        Math.round(mixes.median(storage).readMicros()),
                        Math.round(mixes.median(storage).writeMicros()));
            }
            table.add("BigMemory, 16 nodes, 1,600 threads", 64_000, 66_000, 25_000, 20_000);
            System.out.print(table);
            System.out.printf("flash / RAM: load %.2f, nine reads to one write %.2f%n%n",
                    loads.ratio(), mixes.ratio());
        }
        return Json.object("entries", keys, "load", loads.json(), "mix", mixes.json());
    }

    private Pair pair(Protocol protocol, long count, int size) {
        int port = respPort != null ? respPort : target.port() + RESP_ABOVE_MAIN;
        return new Pair(target, port, protocol, count, size);
    }

    /** Neither is always the first, so that neither has all of what the first one warms. */
    private static List<Storage> order(int round) {
        return round % 2 == 0 ? List.of(Storage.RAM, Storage.FLASH)
                : List.of(Storage.FLASH, Storage.RAM);
    }

    private static void atLeast(String option, int given, int least) {
        if (given < least) {
            throw new GridException(option + " is " + given + "; expected at least " + least);
        }
    }

    /** The rounds of both caches at one thing. */
    private static final class Rounds {
        private final Map<Storage, List<Round>> counted = new EnumMap<>(Storage.class);

        /** The first round of each warms the machine and does not count. */
        void add(int number, Storage storage, Round round) {
            if (number > 0) {
                counted.computeIfAbsent(storage, none -> new ArrayList<>()).add(round);
            }
        }

        Round median(Storage storage) {
            return Round.median(counted.get(storage));
        }

        double ratio() {
            return Round.median(counted.get(Storage.FLASH), Round::rate)
                    / Round.median(counted.get(Storage.RAM), Round::rate);
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
            Json json = Json.object("flash_to_ram", ratio());
            counted.forEach((storage, rounds) -> json.set(storage.name().toLowerCase(Locale.ROOT),
                    Json.object("median", median(storage).json(),
                            "rounds", Json.make(rounds.stream().map(Round::json).toList()))));
            return json;
        }
    }
}
