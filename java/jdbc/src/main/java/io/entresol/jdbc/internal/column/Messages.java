package io.entresol.jdbc.internal.column;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.infinispan.protostream.ImmutableSerializationContext;
import org.infinispan.protostream.ProtobufParser;
import org.infinispan.protostream.TagHandler;
import org.infinispan.protostream.WrappedMessage;
import org.infinispan.protostream.descriptors.Descriptor;
import org.infinispan.protostream.descriptors.FieldDescriptor;

/**
 * Values as a cache keeps them, messages of ProtoStream, taken apart into the cells of a row and
 * put together from them. This needs the schema of the values, not their class.
 */
public final class Messages {
    private final ImmutableSerializationContext context;
    private final Descriptor wrapper;
    private final Descriptor type;
    private final List<Column> columns;
    /** Columns by the path of their field, as {@link Reader} meets it. */
    private final Map<String, Integer> places = new HashMap<>();
    /** Those that have a value where the message around their field lacks it. */
    private final List<Column> defaults;
    private final boolean documents;

    public Messages(ImmutableSerializationContext context, Descriptor type, List<Column> columns) {
        this.context = context;
        this.wrapper = context.getMessageDescriptor(WrappedMessage.PROTOBUF_TYPE_NAME);
        this.type = type;
        this.columns = columns;
        for (int place = 0; place < columns.size(); place++) {
            if (!columns.get(place).isKey()) {
                places.put(columns.get(place).name(), place);
            }
        }
        defaults = columns.stream()
                .filter(column -> !column.isKey() && column.field().hasDefaultValue()).toList();
        documents = columns.stream()
                .anyMatch(column -> column.type() == ColumnType.DOCUMENT && !column.isKey());
    }

    /** All cells of a value but the key's; null if it is of another type. */
    public Object[] cells(byte[] wrapped) {
        Wrapped value = unwrap(wrapped);
        if (!value.isOf(type)) {
            return null;
        }
        Object[] cells = new Object[columns.size()];
        fillDefaults(List.of(), cells);
        parse(new Reader(cells), type, value.message());
        if (documents) {
            Documents.fill(Documents.json(context, wrapped), columns, cells);
        }
        return cells;
    }

    /** Of the fields of the message at a path, which is there: as in the index, none of others. */
    private void fillDefaults(List<String> path, Object[] cells) {
        for (Column column : defaults) {
            List<FieldDescriptor> message = column.path().subList(0, column.path().size() - 1);
            int place = places.get(column.name());
            if (cells[place] == null
                    && message.stream().map(FieldDescriptor::getName).toList().equals(path)) {
                cells[place] = column.cell(column.field().getDefaultValue());
            }
        }
    }

    /** A value that has these cells; columns that are null in {@code cells} are left out. */
    public byte[] made(Object[] cells) {
        return wrap(MessageBytes.edited(new byte[0], changes(columns, cells)));
    }

    /** The value with these columns changed, and everything else as it was. */
    public byte[] changed(byte[] wrapped, List<Column> changed, Object[] cells) {
        return wrap(MessageBytes.edited(unwrap(wrapped).message(), changes(changed, cells)));
    }

    private static MessageBytes.Changes changes(List<Column> changed, Object[] cells) {
        MessageBytes.Changes changes = new MessageBytes.Changes();
        for (int place = 0; place < cells.length; place++) {
            Column column = changed.get(place);
            if (column.isKey() || column.type() == ColumnType.DOCUMENT && cells[place] == null) {
                continue;
            }
            changes.set(column.path(), column.stored(cells[place]));
        }
        return changes;
    }

    private byte[] wrap(byte[] message) {
        MessageBytes.Output output = new MessageBytes.Output();
        if (type.getTypeId() != null) {
            output.varint(WrappedMessage.WRAPPED_TYPE_ID, type.getTypeId());
        } else {
            output.bytes(WrappedMessage.WRAPPED_TYPE_NAME, MessageBytes.utf8(type.getFullName()));
        }
        output.bytes(WrappedMessage.WRAPPED_MESSAGE, message);
        return output.toByteArray();
    }

    private Wrapped unwrap(byte[] wrapped) {
        return Wrapped.of(wrapper, wrapped);
    }

    static void parse(TagHandler handler, Descriptor type, byte[] bytes) {
        try {
            ProtobufParser.INSTANCE.parse(handler, type, bytes);
        } catch (IOException failure) {
            throw new UncheckedIOException("a value of " + bytes.length + " bytes is no message of "
                    + "type " + type.getFullName(), failure);
        }
    }

    /** Puts the fields of a message where their columns are. */
    private final class Reader implements TagHandler {
        private final Object[] cells;
        private final List<String> path = new ArrayList<>();

        Reader(Object[] cells) {
            this.cells = cells;
        }

        @Override
        public void onTag(int number, FieldDescriptor field, Object value) {
            if (field == null) {
                return;
            }
            String name = path.isEmpty() ? field.getName()
                    : String.join(".", path) + "." + field.getName();
            Integer place = places.get(name);
            if (place != null && columns.get(place).type() != ColumnType.DOCUMENT) {
                cells[place] = columns.get(place).cell(value);
            }
        }

        @Override
        public void onStart(org.infinispan.protostream.descriptors.GenericDescriptor type) {}

        @Override
        public void onStartNested(int number, FieldDescriptor field) {
            path.add(field == null ? "?" : field.getName());
            fillDefaults(path, cells);
        }

        @Override
        public void onEndNested(int number, FieldDescriptor field) {
            path.remove(path.size() - 1);
        }

        @Override
        public void onEnd() {}
    }
}
