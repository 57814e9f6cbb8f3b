package io.entresol.jdbc.internal.column;

import com.google.common.io.BaseEncoding;
import java.math.BigDecimal;
import org.apache.calcite.avatica.util.ByteString;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.sql.type.SqlTypeName;
import org.infinispan.protostream.descriptors.EnumDescriptor;
import org.infinispan.protostream.descriptors.EnumValueDescriptor;
import org.infinispan.protostream.descriptors.FieldDescriptor;

/**
 * The type of a column's values, and their form on both sides: ProtoStream reads and Ickle compares
 * <em>fields</em>, the SQL engine computes with <em>cells</em>.
 */
public enum ColumnType {
    BOOLEAN(SqlTypeName.BOOLEAN),
    INTEGER(SqlTypeName.INTEGER),
    BIGINT(SqlTypeName.BIGINT),
    REAL(SqlTypeName.REAL),
    DOUBLE(SqlTypeName.DOUBLE),
    VARCHAR(SqlTypeName.VARCHAR),
    VARBINARY(SqlTypeName.VARBINARY),
    /** A field of an enumeration, shown by the names of its values. */
    ENUM(SqlTypeName.VARCHAR),
    /** Milliseconds since 1970 in a field of 64 bits whose comment says {@code @SqlTimestamp}. */
    TIMESTAMP(SqlTypeName.TIMESTAMP),
    /** Whatever has no type of its own, as JSON; it can be read only. */
    DOCUMENT(SqlTypeName.VARCHAR);

    /** The word in a field's comment that makes a column of moments of it. */
    static final String TIMESTAMP_MARK = "@SqlTimestamp";
    /** No value of an enumeration has it, so that it equals none. */
    private static final Integer NO_VALUE = Integer.MIN_VALUE;

    private final SqlTypeName sql;

    ColumnType(SqlTypeName sql) {
        this.sql = sql;
    }

    /** The type of a field that is a scalar. */
    static ColumnType of(FieldDescriptor field) {
        if (field.isRepeated() || field.isMap()) {
            return DOCUMENT;
        }
        return switch (field.getJavaType()) {
            case BOOLEAN -> BOOLEAN;
            case INT -> INTEGER;
            case LONG -> isMoment(field) ? TIMESTAMP : BIGINT;
            case FLOAT -> REAL;
            case DOUBLE -> DOUBLE;
            case STRING -> VARCHAR;
            case BYTE_STRING -> VARBINARY;
            case ENUM -> ENUM;
            default -> DOCUMENT;
        };
    }

    private static boolean isMoment(FieldDescriptor field) {
        String comment = field.getDocumentation();
        return comment != null && comment.contains(TIMESTAMP_MARK);
    }

    public SqlTypeName sqlName() {
        return sql;
    }

    RelDataType sqlType(RelDataTypeFactory factory) {
        return switch (this) {
            case VARCHAR, ENUM, DOCUMENT, VARBINARY ->
                    factory.createSqlType(sql, RelDataType.PRECISION_NOT_SPECIFIED);
            case TIMESTAMP -> factory.createSqlType(sql, 3);
            default -> factory.createSqlType(sql);
        };
    }

    /** Whether an index orders values as SQL does. */
    public boolean isOrdered() {
        return this != ENUM && this != VARBINARY && this != DOCUMENT;
    }

    /** Whether it is of floating-point numbers, which have two zeros. */
    public boolean isApproximate() {
        return this == REAL || this == DOUBLE;
    }

    /** The cell of a field; {@code field} says which enumeration. */
    Object cell(FieldDescriptor field, Object value) {
        if (value == null) {
            return null;
        }
        return switch (this) {
            case VARBINARY -> new ByteString((byte[]) value);
            case ENUM -> nameOf(field.getEnumType(), (Integer) value);
            case INTEGER -> ((Number) value).intValue();
            case BIGINT, TIMESTAMP -> ((Number) value).longValue();
            default -> value;
        };
    }

    /** The field for a cell; {@code where} names the column for people. */
    public Object field(FieldDescriptor field, Object cell, String where) {
        if (cell == null) {
            return null;
        }
        return switch (this) {
            case BOOLEAN -> expect(Boolean.class, cell, where);
            case INTEGER -> (int) whole(cell, Integer.MIN_VALUE, Integer.MAX_VALUE, where);
            case BIGINT -> whole(cell, Long.MIN_VALUE, Long.MAX_VALUE, where);
            case TIMESTAMP -> moment(cell, where);
            case REAL -> number(cell, where).floatValue();
            case DOUBLE -> number(cell, where).doubleValue();
            case VARCHAR -> cell.toString();
            case VARBINARY -> bytes(cell, where);
            case ENUM -> numberOf(field.getEnumType(), cell.toString());
            case DOCUMENT -> throw mistake(where, "a column that can be read only", cell);
        };
    }

    /** As {@link #field}, refusing names that the enumeration does not have. */
    Object storable(FieldDescriptor field, Object cell, String where) {
        Object value = field(field, cell, where);
        if (this == ENUM && NO_VALUE.equals(value)) {
            throw mistake(where, "one of " + field.getEnumType().getValues().stream()
                    .map(EnumValueDescriptor::getName).toList(), cell);
        }
        return value;
    }

    private static String nameOf(EnumDescriptor type, Integer number) {
        EnumValueDescriptor value = type.findValueByNumber(number);
        return value == null ? number.toString() : value.getName();
    }

    private static Integer numberOf(EnumDescriptor type, String name) {
        EnumValueDescriptor value = type.findValueByName(name);
        return value == null ? NO_VALUE : value.getNumber();
    }

    /** Moments are longs in the engine, and days and times of a day are the integers. */
    private long moment(Object cell, String where) {
        if (cell instanceof Integer) {
            throw mistake(where, "a moment", cell);
        }
        return whole(cell, Long.MIN_VALUE, Long.MAX_VALUE, where);
    }

    private long whole(Object cell, long least, long most, String where) {
        Number given = number(cell, where);
        BigDecimal number = given instanceof BigDecimal exact
                ? exact : new BigDecimal(given.toString());
        if (number.stripTrailingZeros().scale() > 0
                || number.compareTo(BigDecimal.valueOf(least)) < 0
                || number.compareTo(BigDecimal.valueOf(most)) > 0) {
            throw mistake(where, "a whole number from " + least + " to " + most, cell);
        }
        return number.longValueExact();
    }

    /** Programs that know no types give all parameters as texts. */
    private Number number(Object cell, String where) {
        if (!(cell instanceof String text)) {
            return expect(Number.class, cell, where);
        }
        try {
            return new BigDecimal(text.strip());
        } catch (NumberFormatException none) {
            throw mistake(where, "a value of type " + this, cell);
        }
    }

    private byte[] bytes(Object cell, String where) {
        return cell instanceof byte[] bytes
                ? bytes : expect(ByteString.class, cell, where).getBytes();
    }

    private <T> T expect(Class<T> type, Object cell, String where) {
        if (!type.isInstance(cell)) {
            throw mistake(where, "a value of type " + this, cell);
        }
        return type.cast(cell);
    }

    private static IllegalArgumentException mistake(String where, String expected, Object found) {
        String shown = found instanceof ByteString bytes
                ? "x'" + BaseEncoding.base16().encode(bytes.getBytes()) + "'" : "`" + found + "`";
        return new IllegalArgumentException(where + ": expected " + expected + ", found " + shown);
    }
}
