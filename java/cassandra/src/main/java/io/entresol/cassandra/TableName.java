package io.entresol.cassandra;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;

/**
 * A Cassandra table, or the table of one of its secondary indexes, which has the same id.
 *
 * @param index the index; empty for the table itself
 */
record TableName(TableId id, String index) {
    static TableName of(TableMetadata metadata) {
        return new TableName(metadata.id, metadata.indexName().orElse(""));
    }

    /** The name in keys of the catalog. */
    byte[] bytes() {
        byte[] name = index.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(2 * Long.BYTES + name.length)
                .putLong(id.asUUID().getMostSignificantBits())
                .putLong(id.asUUID().getLeastSignificantBits()).put(name).array();
    }

    /** The name that bytes of the catalog stand for. */
    static TableName of(ByteBuffer bytes) {
        ByteBuffer rest = bytes.duplicate();
        TableId id = TableId.fromUUID(new UUID(rest.getLong(), rest.getLong()));
        return new TableName(id, StandardCharsets.UTF_8.decode(rest).toString());
    }

    /** The name of the ordered table of a generation. */
    String ordered(long generation) {
        return "cassandra/" + id + (index.isEmpty() ? "" : "." + index) + "/" + generation;
    }
}
