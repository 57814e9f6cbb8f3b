package io.entresol.grid;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import org.infinispan.commons.dataconversion.internal.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** {@code entresol-grid info}. */
@Command(name = "info", mixinStandardHelpOptions = true,
        description = "Tells of the grid's members, or of a cache and its stores on flash.",
        footer = {"", "Examples:", "  entresol-grid info", "  entresol-grid info prices --json"})
final class Info implements Callable<Integer> {
    private static final String PUTS = "puts";
    /** Figures of a store, by the names that docs/reference/http.md gives them. */
    private static final List<String> FIGURES = List.of("entries", "flash_live_bytes",
            "write_amplification", "gets", "memory_hits", "flash_hits", "misses", PUTS);

    @Parameters(paramLabel = "CACHE", arity = "0..1", description = "a cache; else the grid")
    private String cache;

    @Mixin
    private Target target;

    @Override
    public Integer call() {
        Rest rest = target.rest();
        Json facts = cache == null ? grid(rest) : cache(rest);
        if (target.json()) {
            System.out.println(facts);
        } else if (cache == null) {
            printGrid(facts);
        } else {
            printCache(facts);
        }
        return 0;
    }

    private static Json grid(Rest rest) {
        Json container = rest.get("/v2/container");
        Map<String, String> sql = new HashMap<>();
        for (Json node : Caches.tell(rest, NodeTask.NAME)) {
            sql.put(node.at("name").asString(),
                    node.at("address").asString() + ":" + node.at("sql").asInteger());
        }
        Json members = Json.array();
        for (Json member : rest.get("/v2/cluster/members").at("members").asJsonList()) {
            String name = member.at("node_address").asString();
            members.add(Json.object("name", name,
                    "address", member.at("physical_addresses").asString(),
                    "sql", sql.getOrDefault(name, "-"),
                    "status", member.at("cache_manager_status").asString()));
        }
        return Json.object("cluster", container.at("cluster_name").asString(),
                "version", container.at("version").asString(), "members", members,
                "caches", Json.make(Caches.names(rest)));
    }

    private Json cache(Rest rest) {
        Caches.require(rest, cache);
        Json configuration = Caches.configuration(rest, cache);
        Json nodes = Json.array();
        for (Json node : Caches.flash(rest)) {
            Json found = node.at("caches");
            nodes.add(Json.object("node", node.at("node").asString(),
                    "flash", found.has(cache) ? found.at(cache) : Json.nil()));
        }
        Json store = Caches.flashStore(configuration).orElse(Json.nil());
        return Json.object("name", cache, "template", Caches.template(configuration),
                "entries", unless(() -> Json.make(Caches.size(rest, cache))),
                "status", status(rest), "sites",
                unless(() -> Json.make(SiteStates.ask(rest).of(cache, configuration))),
                "store", store,
                "statistics", unless(() -> Caches.statistics(rest, cache)), "nodes", nodes);
    }

    private String status(Rest rest) {
        try {
            return Caches.health(rest, cache);
        } catch (RefusedException refused) {
            return refused.getMessage();
        }
    }

    /** Nothing if it is refused, as by a node that withdrew: why is among what the nodes say. */
    private static Json unless(Supplier<Json> asked) {
        try {
            return asked.get();
        } catch (RefusedException | ForbiddenException refused) {
            return Json.nil();
        }
    }

    private static void printGrid(Json facts) {
        System.out.printf("cluster  %s, Infinispan %s%n", facts.at("cluster").asString(),
                facts.at("version").asString());
        System.out.printf("caches   %s%n%n", String.join(", ", facts.at("caches").asJsonList()
                .stream().map(Json::asString).toList()));
        Table table = new Table("member", "address", "SQL", "status");
        for (Json member : facts.at("members").asJsonList()) {
            table.add(member.at("name").asString(), member.at("address").asString(),
                    member.at("sql").asString(), member.at("status").asString());
        }
        System.out.print(table);
    }

    private static void printCache(Json facts) {
        Json entries = facts.at("entries");
        System.out.printf("cache     %s%ntemplate  %s%nentries   %s%nstatus    %s%n",
                facts.at("name").asString(), facts.at("template").asString(),
                entries.isNull() ? "-" : String.format("%,d", entries.asLong()),
                facts.at("status").asString());
        printSites(facts);
        Table table = new Table("node", "entries", "bytes", "written/put", "gets", "from memory",
                "from flash", "misses", "puts");
        boolean any = false;
        for (Json node : facts.at("nodes").asJsonList()) {
            Json flash = node.at("flash");
            if (flash.isNull()) {
                continue;
            }
            if (flash.has(FlashTask.WITHDREW)) {
                System.out.printf("withdrew  %s: %s%n", node.at("node").asString(),
                        flash.at(FlashTask.WITHDREW).asString());
            } else {
                any = true;
                Object[] row = new Object[FIGURES.size() + 1];
                row[0] = node.at("node").asString();
                for (int at = 0; at < FIGURES.size(); at++) {
                    Object value = flash.at(FIGURES.get(at)).getValue();
                    boolean ratio = value instanceof Double || value instanceof Float;
                    // Nothing was put that what is written could be a multiple of.
                    row[at + 1] = ratio && flash.at(PUTS).asLong() == 0 ? null
                            : ratio ? String.format(java.util.Locale.ROOT, "%.2f", value)
                            : ((Number) value).longValue();
                }
                table.add(row);
            }
        }
        System.out.print(any ? System.lineSeparator() + table.toString() : "");
    }

    /** A site that is marked offline stays so until somebody brings it online. */
    private static void printSites(Json facts) {
        if (facts.at("sites").isNull()) {
            return;
        }
        facts.at("sites").asJsonMap().forEach((site, said) -> {
            String state = said.asString();
            System.out.printf("site      %s %s%s%n", site, state,
                    state.equals(SiteStates.ONLINE) ? ""
                    : state.equals(SiteStates.AWAY) ? ": what changes waits for it"
                    : ": what changes does not go there. Once it has the cache: POST …/rest"
                            + Rest.cache(facts.at("name").asString()) + "/x-site/backups/" + site
                            + "?action=bring-online, then the same with start-push-state");
        });
    }
}
