package io.entresol.infinispan.recovery;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/**
 * How a cluster is put together again: the coordinator draws the plan up, all others adopt it.
 *
 * @param lineage of the cache
 * @param incarnation that begins with it
 * @param members names of the nodes whose entries are used
 * @param hash the owners of segments, members alone
 * @param whole whether the hash is unchanged, with nobody left out
 */
record Plan(UUID lineage, long incarnation, Map<UUID, String> members, Map<String, String> hash,
        boolean whole) {
    /** Reads what {@link #toString} gives. */
    static Plan parse(String text) {
        Lines lines = Lines.parse(text);
        Map<UUID, String> members = new LinkedHashMap<>();
        lines.all("member.").forEach((id, name) -> members.put(UUID.fromString(id), name));
        return new Plan(UUID.fromString(lines.get("lineage")),
                Long.parseLong(lines.get("incarnation")), members, lines.all("hash."),
                Boolean.parseBoolean(lines.get("whole")));
    }

    @Override
    public String toString() {
        return new Lines().put("lineage", lineage).put("incarnation", incarnation)
                .put("whole", whole).putAll("member.", members).putAll("hash.", hash).toString();
    }
}
