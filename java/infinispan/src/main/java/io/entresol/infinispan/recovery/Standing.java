package io.entresol.infinispan.recovery;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/**
 * A node's knowledge of a cache's cluster and of the entries in its own store. It is kept in the
 * store, and written before the node takes part in the topology that it describes.
 *
 * @param lineage the cache since it was started empty; stores of different ones never mix
 * @param epoch the moment at which this held
 * @param holds whether the node's own store has all entries that it owns by the hash
 * @param members names of the nodes of the hash
 * @param hash the owners of segments, as {@link SavedHash} reads them; each owner has all entries
 */
record Standing(UUID lineage, Epoch epoch, boolean holds, Map<UUID, String> members,
        Map<String, String> hash) {
    private static final String FORMAT = "1";

    /** Reads what {@link #toString} gives. */
    static Standing parse(String text) {
        Lines lines = Lines.parse(text);
        if (!lines.get("format").equals(FORMAT)) {
            throw new IllegalArgumentException("format " + lines.get("format")
                    + " of a cache's standing; expected " + FORMAT);
        }
        Map<UUID, String> members = new LinkedHashMap<>();
        lines.all("member.").forEach((id, name) -> members.put(UUID.fromString(id), name));
        return new Standing(UUID.fromString(lines.get("lineage")),
                Epoch.parse(lines.get("epoch")), Boolean.parseBoolean(lines.get("holds")),
                members, lines.all("hash."));
    }

    /** The same of a node whose own store has nothing of it. */
    Standing withoutEntries() {
        return new Standing(lineage, epoch, false, members, hash);
    }

    @Override
    public String toString() {
        return new Lines().put("format", FORMAT).put("lineage", lineage).put("epoch", epoch)
                .put("holds", holds).putAll("member.", members).putAll("hash.", hash).toString();
    }
}
