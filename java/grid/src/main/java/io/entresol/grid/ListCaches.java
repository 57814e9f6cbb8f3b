package io.entresol.grid;

import java.util.List;
import java.util.concurrent.Callable;
import org.infinispan.commons.dataconversion.internal.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** {@code entresol-grid list}. */
@Command(name = "list", mixinStandardHelpOptions = true, description = "Lists the caches.",
        footer = {"", "Example:", "  entresol-grid list --server 10.0.0.1:11222 --json"})
final class ListCaches implements Callable<Integer> {
    @Mixin
    private Target target;

    @Override
    public Integer call() {
        Rest rest = target.rest();
        Table table = new Table("cache", "template", "entries", "status");
        Json list = Json.array();
        List<Json> nodes = Caches.flash(rest);
        SiteStates sites = SiteStates.ask(rest);
        for (String name : Caches.names(rest)) {
            Json row = row(rest, name, sites);
            List<String> withdrew = Caches.withdrew(nodes, name);
            if (!withdrew.isEmpty()) {
                row.set("status", row.at("status").asString() + ", withdrew: "
                        + String.join(", ", withdrew));
            }
            table.add(name, row.at("template").getValue(), row.at("entries").getValue(),
                    row.at("status").getValue());
            list.add(row);
        }
        System.out.print(target.json() ? list + System.lineSeparator() : table.toString());
        return 0;
    }

    /** A cache that does not answer hides no other. */
    private static Json row(Rest rest, String name, SiteStates sites) {
        Json row = Json.object("name", name, "template", Json.nil(), "entries", Json.nil());
        try {
            String health = Caches.health(rest, name);
            row.set("status", health);
            row.set("entries", Caches.size(rest, name));
            Json configuration = Caches.configuration(rest, name);
            return row.set("template", Caches.template(configuration))
                    .set("status", SiteStates.cutOff(sites.of(name, configuration))
                            .map(those -> health + ", " + those).orElse(health));
        } catch (ForbiddenException looksOnly) {
            // What the user may not see is left out.
            return row;
        } catch (GridException failure) {
            return row.set("status", failure.getMessage());
        }
    }
}
