package io.entresol.infinispan.recovery;

import java.util.Arrays;
import java.util.Collection;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;

/**
 * A node's answer when another node asks about a cache.
 *
 * @param name of the node
 * @param node its persistent identity; null if it has not started the cache
 * @param phase its phase in the start of the cache
 * @param available whether the cache serves all keys, as this node sees it
 * @param standing the standing in its store; null if there is none
 * @param plan the plan that it adopted; null if none
 * @param undeployed the lineages in the question that it knows to be undeployed
 */
record Answer(String name, UUID node, Phase phase, boolean available, Standing standing,
        Plan plan, Set<UUID> undeployed) {
    private static final String END = "\n--\n";

    /** How far a node is with a cache. */
    enum Phase {
        /** The node did not answer: it may have anything. */
        SILENT,
        /** The cache was not started there. */
        ABSENT,
        /** Waits for the others, because one of them has the cache: this node never had it. */
        BORROWING,
        /** Waits for the others. */
        WAITING,
        /** Is about to start the cache empty, unless another one is. */
        CLAIMING,
        /** Starts the cache empty. */
        STARTING,
        /** Has taken over a plan. */
        PREPARED,
        /** Joins with the entries that it has. */
        RESTORING,
        /** Joins without entries. */
        JOINING,
        /** Takes part in the cache's cluster. */
        RUNNING
    }

    /** Of a node that has not started the cache. */
    static Answer absent(String name) {
        return new Answer(name, null, Phase.ABSENT, false, null, null, Set.of());
    }

    /** Reads what {@link #toString} gives, or nothing; {@code name} is the node's. */
    static Answer parse(String name, String text) {
        if (text.isEmpty()) {
            return new Answer(name, null, Phase.SILENT, false, null, null, Set.of());
        }
        String[] parts = text.split(END, -1);
        Lines head = Lines.parse(parts[0]);
        String node = head.get("node");
        return new Answer(name, node.isEmpty() ? null : UUID.fromString(node),
                Phase.valueOf(head.get("phase")), Boolean.parseBoolean(head.get("available")),
                parts[1].isEmpty() ? null : Standing.parse(parts[1]),
                parts[2].isEmpty() ? null : Plan.parse(parts[2]),
                lineages(head.get("undeployed")));
    }

    /** The same of a node that knows that these were undeployed. */
    Answer knowing(Set<UUID> gone) {
        return new Answer(name, node, phase, available, standing, plan, gone);
    }

    /** The same of a node whose store has nothing that counts. */
    Answer withoutStanding() {
        return new Answer(name, node, phase, available, null, plan, undeployed);
    }

    /** Lineages as a text, without blanks. */
    static String text(Collection<UUID> lineages) {
        return lineages.stream().map(UUID::toString).collect(Collectors.joining(","));
    }

    /** Reads what {@link #text} gives. */
    static Set<UUID> lineages(String text) {
        return text.isEmpty() ? Set.of() : Arrays.stream(text.split(","))
                .map(UUID::fromString).collect(Collectors.toSet());
    }

    boolean isThere() {
        return phase != Phase.ABSENT && phase != Phase.SILENT;
    }

    @Override
    public String toString() {
        return new Lines().put("node", node == null ? "" : node).put("phase", phase)
                .put("available", available).put("undeployed", text(undeployed))
                + END + (standing == null ? "" : standing) + END + (plan == null ? "" : plan);
    }
}
