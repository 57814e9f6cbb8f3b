package io.entresol.jdbc.internal.column;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Locale;
import org.infinispan.commons.marshall.WrappedByteArray;
import org.infinispan.protostream.ImmutableSerializationContext;
import org.infinispan.protostream.ProtobufUtil;
import org.infinispan.protostream.exception.ProtoStreamException;

/** Keys as a cache keeps them, and as cells. */
public final class Keys {
    /** Types that a key may have in SQL; others are shown as JSON. */
    private static final List<ColumnType> TYPES = List.of(ColumnType.VARCHAR, ColumnType.INTEGER,
            ColumnType.BIGINT, ColumnType.BOOLEAN, ColumnType.REAL, ColumnType.DOUBLE,
            ColumnType.VARBINARY);

    private final ImmutableSerializationContext context;
    private final ColumnType type;

    public Keys(ImmutableSerializationContext context, ColumnType type) {
        this.context = context;
        this.type = type;
    }

    /** The type by its name in SQL. */
    public static ColumnType parse(String name) {
        return TYPES.stream().filter(type -> type.name().equals(name.toUpperCase(Locale.ROOT)))
                .findFirst().orElseThrow(() -> new IllegalArgumentException("`" + name
                        + "` is no type of a key; expected one of " + TYPES));
    }

    /** The type that one of the keys suggests. */
    public static ColumnType typeOf(ImmutableSerializationContext context, byte[] stored) {
        Object key = unwrapped(context, stored);
        if (key instanceof String) {
            return ColumnType.VARCHAR;
        } else if (key instanceof Integer) {
            return ColumnType.INTEGER;
        } else if (key instanceof Long) {
            return ColumnType.BIGINT;
        } else if (key instanceof Boolean) {
            return ColumnType.BOOLEAN;
        } else if (key instanceof Float) {
            return ColumnType.REAL;
        } else if (key instanceof Double) {
            return ColumnType.DOUBLE;
        }
        return key instanceof byte[] ? ColumnType.VARBINARY : ColumnType.DOCUMENT;
    }

    public Object cell(byte[] stored) {
        if (type == ColumnType.DOCUMENT) {
            return Documents.json(context, stored);
        }
        Object key = unwrapped(context, stored);
        boolean fits = switch (type) {
            case VARCHAR -> key instanceof String;
            case INTEGER -> key instanceof Integer;
            case BIGINT -> key instanceof Long;
            case BOOLEAN -> key instanceof Boolean;
            case REAL -> key instanceof Float;
            case DOUBLE -> key instanceof Double;
            default -> key instanceof byte[];
        };
        if (!fits) {
            String found = key == null ? "a message" : "a " + key.getClass().getSimpleName();
            throw new IllegalStateException("column " + Columns.KEY + " is " + type
                    + ", but the cache has a key that is " + found
                    + "; name the type of the keys in the URL: keys=cache:TYPE");
        }
        return type.cell(null, key);
    }

    public byte[] stored(Object cell) {
        if (cell == null) {
            throw new IllegalArgumentException("column " + Columns.KEY
                    + ": expected a key, found null");
        }
        try {
            Object key = type.field(null, cell, "column " + Columns.KEY);
            return ProtobufUtil.toWrappedByteArray(context, key);
        } catch (IOException failure) {
            throw new UncheckedIOException("the key " + cell + " cannot be encoded", failure);
        }
    }

    /** A key that a map of the cache's entries finds. */
    public static WrappedByteArray wrapped(byte[] stored) {
        return new WrappedByteArray(stored);
    }

    /** The bytes of a key, however the cache hands it out. */
    public static byte[] bytes(Object key) {
        return key instanceof WrappedByteArray wrapped ? wrapped.getBytes() : (byte[]) key;
    }


    /** The key; null if it is a message whose class is not here. */
    private static Object unwrapped(ImmutableSerializationContext context, byte[] stored) {
        try {
            return ProtobufUtil.fromWrappedByteArray(context, stored);
        } catch (ProtoStreamException | IllegalArgumentException noClass) {
            return null;
        } catch (IOException failure) {
            throw new UncheckedIOException("a key of " + stored.length + " bytes cannot be read",
                    failure);
        }
    }
}
