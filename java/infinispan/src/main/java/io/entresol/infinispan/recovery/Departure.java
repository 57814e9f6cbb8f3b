package io.entresol.infinispan.recovery;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Whether a node whose store fails may leave a cache's cluster: a function without memory.
 *
 * <p>Nodes that ask at the same time do not both leave a segment that only they own: each announces
 * that its store is not sound before it asks, so at least one of two hears the other, and does not
 * count on it.
 *
 * @param node the node that wants to leave
 * @param owners for each segment, the nodes that have all its entries
 * @param stores the reports of the nodes that run the cache
 */
record Departure<N>(N node, List<List<N>> owners, Map<N, StoreReport> stores) {
    /** How much less than the mean of all a node may get, and how much more. */
    private static final int UNEVEN = 2;

    /** Why the node has to stay; empty: it may leave. */
    Optional<String> obstacle(StoreFault fault) {
        Set<N> sound = new HashSet<>();
        stores.forEach((other, report) -> {
            if (!other.equals(node) && report.sound()) {
                sound.add(other);
            }
        });
        List<Integer> alone = new ArrayList<>();
        for (int segment = 0; segment < owners.size(); segment++) {
            List<N> those = owners.get(segment);
            if (those.contains(node) && those.stream().noneMatch(sound::contains)) {
                alone.add(segment);
            }
        }
        if (!alone.isEmpty()) {
            return Optional.of("no other node with a sound store has the entries of "
                    + alone.size() + " of " + owners.size() + " segments");
        }
        if (sound.isEmpty()) {
            return Optional.of("no other node runs the cache with a sound store");
        }
        return fault.kind() == StoreFault.Kind.FULL ? withoutRoom(sound) : Optional.empty();
    }

    /** A store that is full goes only where its entries have room, or the others follow it. */
    private Optional<String> withoutRoom(Set<N> sound) {
        StoreReport own = stores.get(node);
        if (own == null) {
            return Optional.of("it does not hear itself");
        }
        // What reclaim keeps for itself, or the index's memory: others cannot use as much either.
        long unusable = own.capacityBytes() - own.liveBytes();
        long segments = 0;
        long moved = 0;
        for (List<N> those : owners) {
            if (those.contains(node)) {
                segments++;
                moved += those.containsAll(sound) ? 0 : 1;
            }
        }
        long bytes = segments == 0 ? 0 : own.liveBytes() / segments * moved;
        long share = bytes / sound.size() * UNEVEN;
        for (N other : sound) {
            long free = stores.get(other).freeBytes() - unusable;
            if (free <= share) {
                return Optional.of("its share would fill the next: " + other + " has room for "
                        + Math.max(0, free) + " bytes, and may get " + share);
            }
        }
        return Optional.empty();
    }
}
