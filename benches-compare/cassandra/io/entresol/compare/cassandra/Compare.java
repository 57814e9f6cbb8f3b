package io.entresol.compare.cassandra;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;

/** Nodes at the same load, by turns; `cassandra.sh --help` says which. */
public final class Compare {
    private static final long MEBIBYTE = 1 << 20;
    private static final long LEAST_CAPACITY = 512 * MEBIBYTE;
    /** Of a store; what stock takes of a device is not limited. */
    private static final double FILLED = 0.6;
    private static final int PASSES = 3;
    /** Seconds of warming up at most, and how many without a gain end it. */
    private static final int WARM_TURNS = 20;
    private static final int WARM_SAME = 3;
    private static final double WARM_GAIN = 0.97;
    /** What a process may take beyond what it had after warming up. */
    private static final long SLACK = 8 * MEBIBYTE;
    private static final int ALL_READS = 100;
    private static final int MOST_READS = 80;

    private final Options options;
    private final Rows rows;
    private final Report report;
    private final Map<Node, Load> loads = new LinkedHashMap<>();
    private long rowsMemory;
    private long seed;

    private Compare(Options options) {
        this.options = options;
        rows = options.shape();
        report = new Report(options.variants());
    }

    /**
     * Runs what the command line asks for. Exit status: 0 done, 1 a node failed, 2 wrong options.
     */
    public static void main(String[] arguments) throws Exception {
        Compare compare;
        try {
            compare = new Compare(Options.parse(arguments));
        } catch (IllegalArgumentException wrong) {
            System.err.println("cassandra.sh: " + wrong.getMessage());
            System.exit(2);
            return;
        }
        try {
            compare.run();
        } catch (Exception failed) {
            failed.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    private void run() throws Exception {
        long bytes = rows.bytes();
        rowsMemory = bytes / options.number("part", 10);
        report.fact("data", rows.count() + " rows, " + bytes / MEBIBYTE + " MiB");
        report.fact("memory for rows", rowsMemory / MEBIBYTE + " MiB");
        report.fact("load of the machine", Files.readString(Path.of("/proc/loadavg")).strip());
        List<Node> nodes = new ArrayList<>();
        try {
            for (Variant variant : options.variants()) {
                Node node = new Node(variant, options);
                nodes.add(node);
                node.make(rowsMemory, Math.max(LEAST_CAPACITY, (long) (bytes / FILLED)));
                node.start();
                load(node, variant);
            }
            for (String phase : options.phases()) {
                System.err.println(phase);
                play(phase);
            }
            report.fact("load at the end", Files.readString(Path.of("/proc/loadavg")).strip());
        } finally {
            // What was measured before a node failed is worth showing.
            System.out.print(report.table());
            if (options.has("json")) {
                Files.writeString(options.path("json"), report.json());
            }
            for (Node node : nodes) {
                node.close();
            }
        }
    }

    private void load(Node node, Variant variant) throws Exception {
        System.err.println("load " + variant.label());
        node.session().execute("CREATE KEYSPACE " + Rows.KEYSPACE
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        node.session().execute(rows.create(variant.table));
        Load load = new Load(rows, node.session(), options.number("in-flight", 64));
        loads.put(node, load);
        Figures before = node.figures();
        load.insertAll();
        node.settle();
        Figures taken = node.figures().since(before);
        report.add("load cpu us/op", variant, taken.processor() / rows.count());
        report.add("load written/put byte", variant,
                taken.bytesWritten() / (double) rows.bytes());
        if (variant.isStock()) {
            node.inside().compactBySelf(false);
            node.inside().compact();
            node.rest();
        }
        report.add("load space/put byte", variant, node.space() / (double) rows.bytes());
    }

    /**
     * Caps each node at what its processes take, and the rows' part of memory. Set anew for each
     * phase, once all have warmed up, since what they take grows with what they have done.
     */
    private void cap(String phase) {
        boolean writes = phase.equals("mixed") || phase.equals("fixed");
        for (Node node : playing(phase).keySet()) {
            if (node.variant == Variant.FLOOR) {
                // All of its rows are in the heap.
                continue;
            }
            if (options.has("record")) {
                report.fact("cap", "none: a recording takes memory of the node");
                return;
            }
            if (node.cap == null) {
                report.fact("cap", "none: this system has no control groups to give");
                return;
            }
            boolean grows = writes || node.variant == Variant.ENTRESOL;
            long own = node.cap.own() + SLACK + (grows ? node.variant.memtable : 0);
            long cap = own + (node.variant.hasCache ? 0 : rowsMemory);
            node.cap.set(cap);
            report.add(phase + " cap MiB", node.variant, cap / (double) MEBIBYTE);
        }
    }

    /** The nodes that play a phase. */
    private Map<Node, Load> playing(String phase) {
        Map<Node, Load> playing = new LinkedHashMap<>(loads);
        playing.keySet().removeIf(node -> !node.variant.plays(phase));
        return playing;
    }

    private void lift() {
        loads.keySet().stream().filter(node -> node.cap != null).forEach(node -> node.cap.lift());
    }

    private void play(String phase) throws Exception {
        switch (phase) {
            case "reads1", "reads4" -> byTurns(phase, (node, load, seconds) ->
                    load.play(seconds, ALL_READS, Load.latencies()));
            case "local1", "local4" -> byTurns(phase, (node, load, seconds) -> node.inside().read(
                    new int[] {rows.count(), rows.least(), rows.most(), rows.clustered()},
                    options.number("threads", 16), (long) (seconds * 1000), seed++ << 20));
            case "updates4" -> updates();
            case "mixed" -> {
                compactBySelf();
                byTurns(phase, (node, load, seconds) ->
                        load.play(seconds, MOST_READS, Load.latencies()));
            }
            case "overwrite" -> overwrite();
            case "fixed" -> fixed();
            default -> memory();
        }
    }

    private interface Window {
        long play(Node node, Load load, double seconds) throws Exception;
    }

    private void byTurns(String phase, Window window) throws Exception {
        double seconds = options.number("seconds", 3);
        lift();
        Map<Node, Load> loads = playing(phase);
        for (Map.Entry<Node, Load> each : loads.entrySet()) {
            warm(each.getKey(), each.getValue(), window);
        }
        if (!phase.startsWith("memory")) {
            cap(phase);
        }
        for (int round = 0; round < options.number("rounds", 1); round++) {
            for (Map.Entry<Node, Load> each : loads.entrySet()) {
                Node node = each.getKey();
                // Under the cap, what is cached is what stays cached.
                window.play(node, each.getValue(), 1);
                node.record(phase);
                Figures before = node.figures();
                long operations = window.play(node, each.getValue(), seconds);
                report.add(phase, node.variant, node.figures().since(before), operations);
                node.recorded();
            }
        }
    }

    /** Plays until the compilers of the node's Java, and of this one, are done with the phase. */
    private static void warm(Node node, Load load, Window window) throws Exception {
        double least = Double.MAX_VALUE;
        int same = 0;
        for (int turn = 0; turn < WARM_TURNS && same < WARM_SAME; turn++) {
            Figures before = node.figures();
            long operations = window.play(node, load, 1);
            double taken = node.figures().since(before).processor() / operations;
            same = taken > least * WARM_GAIN ? same + 1 : 0;
            least = Math.min(least, taken);
        }
    }

    /** Changes a column of each row, three times, each of which leaves an SSTable. */
    private void updates() throws Exception {
        lift();
        for (Map.Entry<Node, Load> each : loads.entrySet()) {
            Node node = each.getKey();
            Figures before = node.figures();
            for (int column = 0; column < PASSES; column++) {
                each.getValue().updateAll(column);
                node.settle();
            }
            report.add("updates4 cpu us/op", node.variant,
                    node.figures().since(before).processor() / PASSES / rows.count());
            report.add("SSTables", node.variant,
                    node.variant.isStock() ? node.inside().sstables() : 0);
        }
    }

    private void compactBySelf() throws Exception {
        lift();
        for (Node node : loads.keySet()) {
            if (node.variant.isStock()) {
                node.inside().compactBySelf(true);
                node.rest();
            }
        }
    }

    /** Overwrites as many random rows as three times all; until nothing is left to be done. */
    private void overwrite() throws Exception {
        compactBySelf();
        for (Map.Entry<Node, Load> each : playing("overwrite").entrySet()) {
            Node node = each.getKey();
            Figures before = node.figures();
            long count = (long) PASSES * rows.count();
            long bytes = each.getValue().overwrite(count);
            node.settle();
            Figures taken = node.figures().since(before);
            report.add("overwrite ops/s", node.variant, count * 1e9 / taken.nanos());
            report.add("overwrite cpu us/op", node.variant, taken.processor() / count);
            report.add("overwrite written/put byte", node.variant,
                    taken.bytesWritten() / (double) bytes);
            report.add("overwrite space/put byte", node.variant,
                    node.space() / (double) rows.bytes());
        }
    }

    private void fixed() throws Exception {
        int rate = options.number("rate", 1000);
        lift();
        Map<Node, Load> loads = playing("fixed");
        for (Load load : loads.values()) {
            load.pace(2, rate, Load.latencies());
        }
        cap("fixed");
        for (int round = 0; round < options.number("rounds", 1); round++) {
            for (Map.Entry<Node, Load> each : loads.entrySet()) {
                Histogram reads = Load.latencies();
                each.getValue().pace(2.0 * options.number("seconds", 3), rate, reads);
                Variant variant = each.getKey().variant;
                report.add("fixed read p50 us", variant, reads.getValueAtPercentile(50));
                report.add("fixed read p99 us", variant, reads.getValueAtPercentile(99));
                report.add("fixed read p99.9 us", variant, reads.getValueAtPercentile(99.9));
            }
        }
    }

    /** The same reads where all rows have room in memory; stock has one SSTable again. */
    private void memory() throws Exception {
        lift();
        for (Map.Entry<Node, Load> each : loads.entrySet()) {
            Node node = each.getKey();
            if (node.variant.isStock()) {
                node.settle();
                node.inside().compact();
                node.rest();
            }
            if (node.variant == Variant.FLOOR) {
                node.inside().stopReading();
            } else if (node.variant == Variant.ENTRESOL || node.variant == Variant.TUNED) {
                node.stop();
                node.make(3 * rows.bytes(), LEAST_CAPACITY);
                node.start();
                each.setValue(new Load(rows, node.session(), options.number("in-flight", 64)));
            }
        }
        // Reads fill the caches; each row comes with others of its page.
        byTurns("memory", (node, load, seconds) ->
                load.play(seconds, ALL_READS, Load.latencies()));
        byTurns("memory-local", (node, load, seconds) -> node.inside().read(
                new int[] {rows.count(), rows.least(), rows.most(), rows.clustered()},
                1, (long) (seconds * 1000), seed++ << 20));
    }
}
