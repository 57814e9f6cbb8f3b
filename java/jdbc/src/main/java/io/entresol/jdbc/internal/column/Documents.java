package io.entresol.jdbc.internal.column;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import org.infinispan.protostream.ImmutableSerializationContext;
import org.infinispan.protostream.ProtobufUtil;
import org.infinispan.protostream.descriptors.FieldDescriptor;

/** Columns that show a part of a value as JSON. */
final class Documents {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Documents() {}

    /** Fills the cells of such columns from the value's JSON. */
    static void fill(String json, List<Column> columns, Object[] cells) {
        JsonNode root = parsed(json);
        for (int place = 0; place < cells.length; place++) {
            Column column = columns.get(place);
            if (column.isKey() || column.type() != ColumnType.DOCUMENT) {
                continue;
            }
            JsonNode node = root;
            for (FieldDescriptor field : column.path()) {
                node = node.path(field.getName());
            }
            cells[place] = node.isMissingNode() || node.isNull() ? null : node.toString();
        }
    }

    /** A key or a value as JSON. */
    static String json(ImmutableSerializationContext context, byte[] wrapped) {
        try {
            return ProtobufUtil.toCanonicalJSON(context, wrapped, false);
        } catch (IOException failure) {
            throw new UncheckedIOException("a message of " + wrapped.length
                    + " bytes cannot be shown as JSON", failure);
        }
    }

    private static JsonNode parsed(String json) {
        try {
            return JSON.readTree(json);
        } catch (JsonProcessingException failure) {
            throw new IllegalArgumentException("a value's JSON cannot be read", failure);
        }
    }
}
