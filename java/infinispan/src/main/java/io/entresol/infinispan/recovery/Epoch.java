package io.entresol.infinispan.recovery;

import java.util.Comparator;

/**
 * A moment in the life of a cache's cluster: a greater epoch is later.
 *
 * @param incarnation number of times that the cluster was put together again from its stores
 * @param view the view of the cluster; a node that the others left behind has an older one
 * @param topology the topology's number, which begins anew with each incarnation
 * @param change counts the changes of a degraded cache; a partition that goes on is later than
 *     these
 */
record Epoch(long incarnation, long view, long topology, long change)
        implements Comparable<Epoch> {
    /** Before everything. */
    static final Epoch NONE = new Epoch(0, 0, 0, 0);

    private static final Comparator<Epoch> ORDER = Comparator.comparingLong(Epoch::incarnation)
            .thenComparingLong(Epoch::view)
            .thenComparingLong(Epoch::topology)
            .thenComparingLong(Epoch::change);

    /** Reads what {@link #toString} gives. */
    static Epoch parse(String text) {
        String[] parts = text.split("\\.");
        if (parts.length != 4) {
            throw new IllegalArgumentException("epoch '" + text + "'; expected four numbers");
        }
        return new Epoch(Long.parseLong(parts[0]), Long.parseLong(parts[1]),
                Long.parseLong(parts[2]), Long.parseLong(parts[3]));
    }

    @Override
    public int compareTo(Epoch other) {
        return ORDER.compare(this, other);
    }

    @Override
    public String toString() {
        return incarnation + "." + view + "." + topology + "." + change;
    }
}
