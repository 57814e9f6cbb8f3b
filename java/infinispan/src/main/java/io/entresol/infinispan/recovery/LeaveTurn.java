package io.entresol.infinispan.recovery;

import io.entresol.infinispan.recovery.Leaving.Intent;
import io.entresol.infinispan.recovery.Leaving.Step;
import io.entresol.infinispan.recovery.Leaving.Verdict;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Whether a node that was told to stop may leave now: a function without memory.
 *
 * <p>Two nodes never leave at once: each announces its leaving before it asks for the last time, so
 * at least one of two hears the other. Of the nodes that want to leave, the first in the view
 * begins.
 *
 * @param node the node that wants to leave
 * @param said the answers of the nodes of the view, in its order
 * @param shares this node's parts of caches
 */
record LeaveTurn<N>(N node, Map<N, Said> said, List<Share<N>> shares) {
    /**
     * What a node says.
     *
     * @param intent what it is about to do
     * @param sound the caches that it runs, and whose entries it has and keeps
     */
    record Said(Intent intent, Set<String> sound) {
        private static final String CACHE = "cache.";

        /** Reads what {@link #toString} gives; who said nothing may be about to go. */
        static Said parse(String text) {
            if (text.isEmpty()) {
                return new Said(Intent.SILENT, Set.of());
            }
            Lines lines = Lines.parse(text);
            return new Said(Intent.valueOf(lines.get("intent")),
                    new HashSet<>(lines.all(CACHE).values()));
        }

        @Override
        public String toString() {
            Lines lines = new Lines().put("intent", intent);
            int number = 0;
            for (String cache : sound) {
                lines.put(CACHE + number++, cache);
            }
            return lines.toString();
        }

        boolean keeps(String cache) {
            return intent != Intent.GOES && sound.contains(cache);
        }
    }

    /**
     * A cache that this node takes part in.
     *
     * @param cache its name
     * @param owners of each segment, those that have all its entries
     * @param copied whether it is configured to have more than one
     * @param entries if it is not: how many this node has
     */
    record Share<N>(String cache, List<List<N>> owners, boolean copied, long entries) {
    }

    Verdict choose() {
        boolean first = true;
        Optional<String> awaited = Optional.empty();
        boolean all = true;
        for (Map.Entry<N, Said> each : said.entrySet()) {
            Intent intent = each.getValue().intent();
            if (each.getKey().equals(node)) {
                first = false;
                continue;
            }
            all &= intent != Intent.SERVES && intent != Intent.SILENT;
            if (intent == Intent.SILENT) {
                awaited = Optional.of("node " + each.getKey() + " does not say whether it leaves");
            } else if (intent == Intent.GOES || first && intent == Intent.WANTS) {
                awaited = Optional.of("node " + each.getKey() + " leaves first");
            }
        }
        if (all && said.size() > 1) {
            return said.keySet().iterator().next().equals(node)
                    ? new Verdict(Step.STOP_CLUSTER, "all nodes were told to stop")
                    : new Verdict(Step.WAIT, "all nodes were told to stop, and do so together");
        }
        return awaited.map(why -> new Verdict(Step.WAIT, why)).orElseGet(this::ifOthersHaveAll);
    }

    private Verdict ifOthersHaveAll() {
        Verdict verdict = new Verdict(Step.LEAVE, "");
        for (Share<N> share : shares) {
            long lacking = share.owners().stream().filter(those ->
                    those.contains(node) && isAlone(share.cache(), those)).count();
            if (lacking > 0 && share.copied()) {
                verdict = new Verdict(Step.WAIT, "cache " + share.cache() + ": no other node has"
                        + " the entries of " + lacking + " of " + share.owners().size()
                        + " segments");
            } else if (lacking > 0 && share.entries() > 0) {
                return new Verdict(Step.STAY, "cache " + share.cache() + " keeps each entry on one"
                        + " node, and this one has " + share.entries());
            }
        }
        return verdict;
    }

    private boolean isAlone(String cache, List<N> owners) {
        return owners.stream().noneMatch(owner -> !owner.equals(node) && said.containsKey(owner)
                && said.get(owner).keeps(cache));
    }
}
