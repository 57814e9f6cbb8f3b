package io.entresol.infinispan.recovery;

import io.entresol.StoreStatistics;

/**
 * What a node says of its store of a cache when another one asks.
 *
 * @param sound whether it may be relied on; a full one is, while its node does not want to leave
 * @param capacityBytes of its device that segments take
 * @param liveBytes what its entries take
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
