package io.entresol.infinispan.recovery;

import io.entresol.StoreStatistics;

/**
 * A node's report on its store of a cache when another node asks.
 *
 * @param sound whether the store can be relied on; a full store can, while its node does not want
 *     to leave
 * @param capacityBytes bytes of its device that segments take
 * @param liveBytes bytes that its entries take
 */
record StoreReport(boolean sound, long capacityBytes, long liveBytes) {
    static StoreReport of(boolean sound, StoreStatistics figures) {
        return new StoreReport(sound, figures.capacityBytes(), figures.liveBytes());
    }

    /** Reads what {@link #toString} gives. */
    static StoreReport parse(String text) {
        Lines lines = Lines.parse(text);
        return new StoreReport(Boolean.parseBoolean(lines.get("sound")),
                Long.parseLong(lines.get("capacity")), Long.parseLong(lines.get("live")));
    }

    long freeBytes() {
        return capacityBytes - liveBytes;
    }

    @Override
    public String toString() {
        return new Lines().put("sound", sound).put("capacity", capacityBytes)
                .put("live", liveBytes).toString();
    }
}
