package io.entresol.grid;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.infinispan.commons.dataconversion.internal.Json;

/** The caches of a grid: those that people deployed, and the initial caches of its endpoints. */
final class Caches {
    private static final String KIND = "entresol-kind";
    /** Infinispan's number for a node that was lost while it was asked. */
    private static final String DIED = "ISPN000400";
    private static final int DEATHS_MAX = 3;

    private Caches() {
    }

    static List<String> names(Rest rest) {
        return rest.get("/v2/caches").asJsonList().stream().map(Json::asString)
                .filter(name -> !isInfinispans(name))
                .sorted().toList();
    }

    /** Whether it is one in which Infinispan keeps what it needs for all others. */
    static boolean isInfinispans(String name) {
        return name.startsWith("___") || name.startsWith("org.infinispan.");
    }

    /** Complains about a cache that is not there, naming those that are. */
    static void require(Rest rest, String name) {
        List<String> names = names(rest);
        if (names.contains(name)) {
            return;
        }
        named(rest, names, name).ifPresent(cache -> {
            throw new GridException("'" + name + "' is a further name, an alias or a database, of"
                    + " cache '" + cache + "'; name that");
        });
        throw new GridException("there is no cache '" + name + "' at node " + rest.server()
                + "; there are " + names.stream().collect(Collectors.joining(", "))
                + "; make one: entresol-grid deploy " + name);
    }

    /** The cache that clients select by a name that is not its own. */
    static Optional<String> named(Rest rest, String alias) {
        return named(rest, names(rest), alias);
    }

    private static Optional<String> named(Rest rest, List<String> names, String alias) {
        return rest.exists(Rest.cache(alias)) ? names.stream()
                .filter(name -> !name.equals(alias) && aliases(rest, name).contains(alias))
                .findFirst() : Optional.empty();
    }

    private static List<String> aliases(Rest rest, String name) {
        try {
            Json aliases = configuration(rest, name).at("aliases");
            return aliases == null || !aliases.isArray() ? List.of()
                    : aliases.asJsonList().stream().map(Json::asString).toList();
        } catch (RefusedException stopped) {
            return List.of();
        }
    }

    static long size(Rest rest, String name) {
        return rest.get(Rest.cache(name) + "?action=size").asLong();
    }

    static Json statistics(Rest rest, String name) {
        return rest.get(Rest.cache(name) + "?action=stats");
    }

    static String health(Rest rest, String name) {
        return rest.getText(Rest.cache(name) + "?action=health").strip();
    }

    /** What each node says of its flash stores, as {@link FlashTask} does. */
    static List<Json> flash(Rest rest) {
        return tell(rest, FlashTask.NAME);
    }

    /** What each of the nodes says to a task; nothing to a user who may not carry out tasks. */
    static List<Json> tell(Rest rest, String task) {
        try {
            return say(rest, "/v2/tasks/" + task + "?action=exec");
        } catch (ForbiddenException looksOnly) {
            return List.of();
        }
    }

    /**
     * The same, of a task with its parameters, which changes nothing. A node that dies before it
     * has answered fails it for all; the next time it is not asked any more.
     */
    static List<Json> say(Rest rest, String path) {
        for (int died = 0;; died++) {
            try {
                return Json.read(rest.post(path, null, "")).asJsonList()
                        .stream().map(text -> Json.read(text.asString())).toList();
            } catch (RefusedException refused) {
                if (!refused.getMessage().contains(DIED) || died == DEATHS_MAX) {
                    throw refused;
                }
            }
        }
    }

    /** The nodes that stopped owning entries of a cache, of those that {@link #flash} gave. */
    static List<String> withdrew(List<Json> nodes, String cache) {
        return nodes.stream()
                .filter(node -> node.at("caches").has(cache)
                        && node.at("caches").at(cache).has(FlashTask.WITHDREW))
                .map(node -> node.at("node").asString()).toList();
    }

    /** What the element of the cache's kind says, and the kind. */
    static Json configuration(Rest rest, String name) {
        Json all = rest.get(Rest.cache(name) + "?action=config");
        Json inner = all.has(name) ? all.at(name) : all;
        Map.Entry<String, Json> kind = inner.asJsonMap().entrySet().iterator().next();
        return kind.getValue().set(KIND, kind.getKey());
    }

    /** The words of the template that would make such a cache. */
    static String template(Json configuration) {
        String storage = flashStore(configuration).isPresent() ? "flash" : "ram";
        boolean backup = configuration.has("owners")
                ? configuration.at("owners").asInteger() > 1
                // Two of a distributed cache that does not say, and all of a replicated one.
                : !configuration.at(KIND).asString().startsWith("local");
        return storage + "," + (backup ? "partitioned-with-backup" : "partitioned")
                + (configuration.has("backups") ? ",two-sites" : "");
    }

    static Optional<Json> flashStore(Json configuration) {
        Json persistence = configuration.at("persistence");
        return persistence == null || !persistence.has("entresol-store") ? Optional.empty()
                : Optional.of(persistence.at("entresol-store"));
    }
}
