package io.entresol.compare.cassandra;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** All figures of a run, as a table for people and as JSON. */
final class Report {
    private final List<Variant> variants;
    private final Map<String, String> facts = new LinkedHashMap<>();
    /** Of each row, the windows of each node. */
    private final Map<String, Map<Variant, List<Double>>> rows = new LinkedHashMap<>();

    /**
     * A row that a goal is set for.
     *
     * @param isSmall the less the better
     * @param factor by which ours should be better than that of a stock node
     */
    private record Goal(String row, boolean isSmall, Variant stock, double factor) {
    }

    private static final List<Goal> GOALS = List.of(
            new Goal("reads1 ops/s", false, Variant.DEFAULTS, 4),
            new Goal("reads4 ops/s", false, Variant.DEFAULTS, 8),
            new Goal("local1 cpu us/op", true, Variant.DEFAULTS, 12),
            new Goal("local4 cpu us/op", true, Variant.DEFAULTS, 30),
            new Goal("reads1 bytes read/op", true, Variant.DEFAULTS, 3),
            new Goal("mixed ops/s", false, Variant.DEFAULTS, 3),
            new Goal("overwrite ops/s", false, Variant.LATEST, 1.3),
            new Goal("overwrite written/put byte", true, Variant.DEFAULTS, 1),
            new Goal("fixed read p99 us", true, Variant.DEFAULTS, 3),
            new Goal("memory cpu us/op", true, Variant.DEFAULTS, 2),
            new Goal("memory cpu us/op", true, Variant.LATEST, 1.4));
    /** More device reads than these for a read are a failure. */
    private static final String DEVICE_READS = "reads1 device reads/op";
    private static final double DEVICE_READS_MOST = 1.05;

    Report(List<Variant> variants) {
        this.variants = variants;
    }

    void fact(String name, Object value) {
        facts.put(name, value.toString());
        System.err.println("  " + name + ": " + value);
    }

    void add(String row, Variant variant, double value) {
        rows.computeIfAbsent(row, none -> new EnumMap<>(Variant.class))
                .computeIfAbsent(variant, none -> new ArrayList<>()).add(value);
    }

    /** What the window of a phase took. */
    void add(String phase, Variant variant, Figures taken, double operations) {
        add(phase + " ops/s", variant, operations * 1e9 / taken.nanos());
        add(phase + " cpu us/op", variant, taken.processor() / operations);
        if (taken.reads() >= 0) {
            add(phase + " device reads/op", variant, taken.reads() / operations);
        }
        add(phase + " bytes read/op", variant, taken.bytesRead() / operations);
    }

    /** For people. */
    String table() {
        StringBuilder text = new StringBuilder();
        facts.forEach((name, value) -> text.append(name).append(": ").append(value).append('\n'));
        text.append(String.format("%n%-28s", "medians"));
        variants.forEach(each -> text.append(String.format("%12s", each.label())));
        text.append(String.format("%26s%n", "goal, and what is reached"));
        for (String row : rows.keySet()) {
            text.append(String.format("%-28s", row));
            for (Variant each : variants) {
                double value = value(row, each);
                text.append(String.format("%12s", Double.isNaN(value) ? "-" : shown(value)));
            }
            text.append("  ").append(verdict(row)).append('\n');
        }
        return text.toString();
    }

    private String verdict(String row) {
        List<String> said = new ArrayList<>();
        for (Goal goal : GOALS) {
            double ours = value(row, Variant.ENTRESOL);
            double stock = value(row, goal.stock);
            if (goal.row.equals(row) && !Double.isNaN(ours) && !Double.isNaN(stock)) {
                double reached = goal.isSmall ? stock / ours : ours / stock;
                said.add(String.format(Locale.ROOT, "%s x %.1f: %.2f%s", goal.stock.label(),
                        goal.factor, reached,
                        reached < goal.factor ? " MISSED" + bound(goal, stock) : ""));
            }
        }
        if (row.equals(DEVICE_READS) && !Double.isNaN(value(row, Variant.ENTRESOL))) {
            said.add(String.format(Locale.ROOT, "at most %.2f%s", DEVICE_READS_MOST,
                    value(row, Variant.ENTRESOL) > DEVICE_READS_MOST ? " MISSED" : ""));
        }
        return String.join("; ", said);
    }

    /** What can be reached by a node that reads one page of the device for each row. */
    private String bound(Goal goal, double stock) {
        double floor = value(goal.row, Variant.FLOOR);
        double ours = value(goal.row, Variant.ENTRESOL);
        return Double.isNaN(floor) ? "" : String.format(Locale.ROOT, ", %.2f of the floor's %.2f",
                goal.isSmall ? floor / ours : ours / floor,
                goal.isSmall ? stock / floor : floor / stock);
    }

    private double value(String row, Variant variant) {
        List<Double> values = rows.getOrDefault(row, Map.of()).get(variant);
        return values == null ? Double.NaN : Load.median(values);
    }

    private static String shown(double value) {
        return String.format(Locale.ROOT, Math.abs(value) < 100 ? "%.2f" : "%,.0f", value);
    }

    /** For programs: facts, and the median of each row and node. */
    String json() {
        List<String> lines = new ArrayList<>();
        facts.forEach((name, value) -> lines.add(quoted(name) + ": " + quoted(value)));
        rows.keySet().forEach(row -> {
            List<String> values = new ArrayList<>();
            for (Variant each : variants) {
                double value = value(row, each);
                if (!Double.isNaN(value)) {
                    values.add(quoted(each.label()) + ": "
                            + String.format(Locale.ROOT, "%.4f", value));
                }
            }
            lines.add(quoted(row) + ": {" + String.join(", ", values) + "}");
        });
        return "{\n  " + String.join(",\n  ", lines) + "\n}\n";
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
