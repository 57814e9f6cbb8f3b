package io.entresol;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Figures of a store since it was opened, each by its name; sizes are in bytes. */
public final class StoreStatistics {
    private static final Pattern FIGURE = Pattern.compile("\"([a-z_]+)\":([-0-9.]+|true|false)");

    private static final Set<String> GAUGES = Set.of("entries", "pending_io",
            "flash_allocated_bytes", "flash_live_bytes", "segments", "segments_free",
            "index_bytes", "buffer_bytes", "cache_bytes", "other_bytes", "capacity_bytes",
            "write_amplification", "poisoned", "oldest_pending_io_seconds");

    private final String json;
    private final Map<String, String> figures = new LinkedHashMap<>();

    StoreStatistics(String json) {
        this.json = json;
        Matcher matcher = FIGURE.matcher(json);
        while (matcher.find()) {
            figures.put(matcher.group(1), matcher.group(2));
        }
    }

    /** Gets. */
    public long gets() {
        return figure("gets");
    }

    /** Gets answered from the cache in memory. */
    public long memoryHits() {
        return figure("memory_hits");
    }

    /** Gets answered from the device. */
    public long flashHits() {
        return figure("flash_hits");
    }

    /** Gets of keys that have no entry. */
    public long misses() {
        return figure("misses");
    }

    /** Puts. */
    public long puts() {
        return figure("puts");
    }

    /** Entries now. */
    public long entries() {
        return figure("entries");
    }

    /** Bytes of the device that live records take. */
    public long liveBytes() {
        return figure("flash_live_bytes");
    }

    /** Bytes of the device that records may take, those that reclaim needs included. */
    public long capacityBytes() {
        return figure("capacity_bytes");
    }

    /** Memory of index, write buffers, tables and cached entries. */
    public long memoryBytes() {
        return figure("index_bytes") + figure("buffer_bytes") + figure("cache_bytes")
                + figure("other_bytes");
    }

    /** Bytes written to the device for each byte that was put. */
    public double writeAmplification() {
        return Double.parseDouble(text("write_amplification"));
    }

    /** Whether a failed write or sync made the store refuse writes. */
    public boolean poisoned() {
        return Boolean.parseBoolean(text("poisoned"));
    }

    /**
     * For how many seconds the oldest request to the device has not been answered, at least. What
     * needs the device waits, and nothing is given up: from about 30 on, look at the device.
     */
    public long oldestPendingIoSeconds() {
        return figure("oldest_pending_io_seconds");
    }

    /** The names of all figures. */
    public Set<String> names() {
        return Collections.unmodifiableSet(figures.keySet());
    }

    /** Whether the figure of a name goes up and down; all others only grow. */
    public static boolean isGauge(String name) {
        return GAUGES.contains(name);
    }

    /** Any figure by its name; one that is true or false is 1 or 0. */
    public double value(String name) {
        String value = text(name);
        return switch (value) {
            case "true" -> 1;
            case "false" -> 0;
            default -> Double.parseDouble(value);
        };
    }

    /** A figure by its name, as {@code docs/reference/http.md} lists them. */
    public long figure(String name) {
        return Long.parseLong(text(name));
    }

    /** All figures as a JSON object. */
    public String json() {
        return json;
    }

    @Override
    public String toString() {
        return json;
    }

    private String text(String name) {
        String value = figures.get(name);
        if (value == null) {
            throw new IllegalArgumentException("there is no figure " + name + "; there are "
                    + figures.keySet());
        }
        return value;
    }
}
