package io.entresol.grid;

import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.infinispan.commons.dataconversion.internal.Json;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code entresol-grid query}. */
@Command(name = "query", mixinStandardHelpOptions = true,
        description = "Runs an Ickle query and prints what it finds as a table.",
        footer = {"", "Examples:",
            "  entresol-grid query orders \"from shop.Order where price > 100\"",
            "  entresol-grid query orders \"select name, price from shop.Order\" --limit 20"})
final class Query implements Callable<Integer> {
    private static final Pattern GROUPED = Pattern.compile("(?i)\\bgroup\\s+by\\b");
    /** Of a search for groups, where nobody names another number. */
    private static final int GROUPS_MAX = 100;

    @Parameters(index = "0", paramLabel = "CACHE", description = "the cache's name")
    private String cache;

    @Parameters(index = "1", paramLabel = "ICKLE", description = "the query")
    private String text;

    @Option(names = "--limit", paramLabel = "N", defaultValue = "100",
            description = "at most so many rows (${DEFAULT-VALUE})")
    private int limit;

    @Option(names = "--offset", paramLabel = "N", defaultValue = "0",
            description = "leave out so many rows (${DEFAULT-VALUE})")
    private int offset;

    @Mixin
    private Target target;

    @Override
    public Integer call() {
        Rest rest = target.rest();
        Caches.require(rest, cache);
        Json found = rest.get(Rest.cache(cache) + "?action=search&max_results=" + limit
                + "&offset=" + offset + "&query=" + Rest.encode(text));
        if (target.json()) {
            System.out.println(found);
            return 0;
        }
        List<Json> hits = found.at("hits").asJsonList().stream().map(hit -> hit.at("hit"))
                .toList();
        Set<String> columns = new TreeSet<>(Comparator.comparingInt(this::place)
                .thenComparing(Comparator.naturalOrder()));
        hits.forEach(hit -> columns.addAll(hit.asJsonMap().keySet()));
        columns.remove("_type");
        if (!columns.isEmpty()) {
            Table table = new Table(columns.toArray(String[]::new));
            for (Json hit : hits) {
                table.add(columns.stream().map(column -> cell(hit.at(column))).toArray());
            }
            System.out.print(table);
        }
        long count = found.at("hit_count").asLong();
        System.out.printf("%,d of %s%,d%n", hits.size(),
                found.has("hit_count_exact") && !found.at("hit_count_exact").asBoolean()
                        ? "at least " : "", count);
        String doubt = doubt(text, Math.max(count, hits.size()));
        if (doubt != null) {
            System.err.println(doubt);
        }
        return 0;
    }

    /** That the answer may not be whole; null if it is. */
    static String doubt(String text, long groups) {
        return groups < GROUPS_MAX || !GROUPED.matcher(text).find() ? null
                : "note: where an index groups, Infinispan leaves out all but " + GROUPS_MAX
                        + " groups of each node and says nothing; entresol-grid sql has no such"
                        + " limit";
    }

    /** Where the query names the column that it wants; JSON keeps no order. */
    private int place(String column) {
        String wanted = text.split("(?i)\\bfrom\\b", 2)[0];
        Matcher matcher = Pattern.compile("\\b" + Pattern.quote(column) + "\\b").matcher(wanted);
        return matcher.find() ? matcher.start() : Integer.MAX_VALUE;
    }

    private static Object cell(Json value) {
        if (value == null || value.isNull()) {
            return null;
        }
        return value.isPrimitive() ? value.asString() : value.toString();
    }
}
