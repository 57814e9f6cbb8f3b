package io.entresol.grid;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.infinispan.commons.dataconversion.internal.Json;

/** Whether the changes of caches reach their other sites. */
final class SiteStates {
    /** It is heard, and changes go to it. */
    static final String ONLINE = "online";
    /** It is not heard: changes wait for it. */
    static final String AWAY = "away";

    private final Rest rest;
    /** Null if the nodes were not asked for those. */
    private final Set<String> heard;

    private SiteStates(Rest rest, Set<String> heard) {
        this.rest = rest;
        this.heard = heard;
    }

    static SiteStates ask(Rest rest) {
        List<Json> nodes = Caches.tell(rest, NodeTask.NAME);
        Set<String> heard = new HashSet<>();
        for (Json node : nodes) {
            if (node.has(NodeTask.SITES)) {
                node.at(NodeTask.SITES).asJsonList().forEach(site -> heard.add(site.asString()));
            }
        }
        return new SiteStates(rest, nodes.isEmpty() ? null : heard);
    }

    /** Of each site that changes of a cache go to: online, away, or what Infinispan calls it. */
    Map<String, String> of(String cache, Json configuration) {
        Map<String, String> states = new TreeMap<>();
        if (configuration.has("backups")) {
            rest.get(Rest.cache(cache) + "/x-site/backups").asJsonMap().forEach((site, said) -> {
                String state = said.at("status").asString();
                boolean away = state.equals(ONLINE) && heard != null && !heard.contains(site);
                states.put(site, away ? AWAY : state);
            });
        }
        return states;
    }

    /** Those that changes do not go to, for a status; empty if to all. */
    static Optional<String> cutOff(Map<String, String> states) {
        List<String> those = states.entrySet().stream()
                .filter(each -> !each.getValue().equals(ONLINE))
                .map(each -> "site " + each.getKey() + " " + each.getValue()).toList();
        return those.isEmpty() ? Optional.empty()
                : Optional.of(those.stream().collect(Collectors.joining(", ")));
    }
}
