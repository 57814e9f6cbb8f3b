package io.entresol.jdbc.internal.statement;

import java.math.BigDecimal;
import java.sql.JDBCType;
import java.sql.SQLException;
import java.sql.Types;
import org.apache.calcite.avatica.ColumnMetaData.Rep;
import org.apache.calcite.avatica.remote.TypedValue;
import org.apache.calcite.avatica.util.ByteString;
import org.apache.calcite.avatica.util.DateTimeUtils;

/**
 * The type that a statement gives a parameter, and the conversion of values to it. All readers of
 * the parameter (an index, a written row, the code that Calcite generates) get the one form of that
 * type. Calcite itself would cut numbers, take a day for milliseconds, and refuse texts. A value
 * fits if its conversion loses nothing; any other value is an error.
 *
 * @param parameter its number, from 1
 * @param type its type in JDBC
 */
record ParameterType(int parameter, int type) {
    /** Set to a parameter, the value as the type has it. */
    TypedValue fitted(TypedValue value) throws SQLException {
        Object given = value == null ? null : value.toLocal();
        if (given == null) {
            return value;
        } else if (isMoment(value)) {
            return ofMoment(value, ((Number) given).longValue());
        } else if (given instanceof String text) {
            return ofText(value, text.strip());
        } else if (given instanceof Number number) {
            return ofNumber(value, number);
        } else if (given instanceof Boolean truth) {
            return ofTruth(value, truth);
        }
        return given instanceof ByteString ? ofBytes(value, (ByteString) given) : value;
    }

    private static boolean isMoment(TypedValue value) {
        return switch (value.type) {
            case JAVA_SQL_DATE, JAVA_SQL_TIME, JAVA_SQL_TIMESTAMP, JAVA_UTIL_DATE -> true;
            default -> false;
        };
    }

    private enum Kind { TRUTH, WHOLE, DECIMAL, APPROXIMATE, TEXT, BYTES, DAY, TIME, MOMENT, OTHER }

    private Kind kind() {
        return switch (type) {
            case Types.BOOLEAN, Types.BIT -> Kind.TRUTH;
            case Types.TINYINT, Types.SMALLINT, Types.INTEGER, Types.BIGINT -> Kind.WHOLE;
            case Types.DECIMAL, Types.NUMERIC -> Kind.DECIMAL;
            case Types.REAL, Types.FLOAT, Types.DOUBLE -> Kind.APPROXIMATE;
            case Types.CHAR, Types.VARCHAR -> Kind.TEXT;
            case Types.BINARY, Types.VARBINARY -> Kind.BYTES;
            case Types.DATE -> Kind.DAY;
            case Types.TIME -> Kind.TIME;
            case Types.TIMESTAMP -> Kind.MOMENT;
            default -> Kind.OTHER;
        };
    }

    /** Days are whole ones, and have no time of their own; a day as a moment is its beginning. */
    private TypedValue ofMoment(TypedValue value, long units) throws SQLException {
        String shown = switch (value.type) {
            case JAVA_SQL_DATE -> DateTimeUtils.unixDateToString((int) units);
            case JAVA_SQL_TIME -> DateTimeUtils.unixTimeToString((int) units, 0);
            default -> DateTimeUtils.unixTimestampToString(units, 3);
        };
        boolean day = value.type == Rep.JAVA_SQL_DATE;
        boolean time = value.type == Rep.JAVA_SQL_TIME;
        return switch (kind()) {
            case OTHER -> value;
            case TEXT -> TypedValue.ofLocal(Rep.STRING, shown);
            case DAY -> {
                if (time || !day && units % DateTimeUtils.MILLIS_PER_DAY != 0) {
                    throw mistake("a day", shown);
                }
                yield day ? value : TypedValue.ofLocal(Rep.JAVA_SQL_DATE,
                        (int) (units / DateTimeUtils.MILLIS_PER_DAY));
            }
            case TIME -> {
                if (!time) {
                    throw mistake("a time of a day", shown);
                }
                yield value;
            }
            case MOMENT -> {
                if (time) {
                    throw mistake("a moment or a day", shown);
                }
                yield TypedValue.ofLocal(Rep.JAVA_SQL_TIMESTAMP,
                        day ? units * DateTimeUtils.MILLIS_PER_DAY : units);
            }
            default -> throw mistake(shown);
        };
    }

    private TypedValue ofNumber(TypedValue value, Number given) throws SQLException {
        return switch (kind()) {
            case OTHER -> value;
            case TRUTH -> TypedValue.ofLocal(Rep.BOOLEAN, given.doubleValue() != 0);
            case TEXT -> TypedValue.ofLocal(Rep.STRING, given instanceof BigDecimal exact
                    ? exact.toPlainString() : given.toString());
            case WHOLE -> whole(given);
            case DECIMAL -> {
                BigDecimal exact = exact(given);
                if (exact == null) {
                    throw mistake("a decimal", given);
                }
                yield TypedValue.ofLocal(Rep.NUMBER, exact);
            }
            case APPROXIMATE -> approximate(given);
            // What a field of moments holds.
            case MOMENT -> TypedValue.ofLocal(Rep.JAVA_SQL_TIMESTAMP,
                    within(given, Long.MIN_VALUE, Long.MAX_VALUE));
            default -> throw mistake(given);
        };
    }

    private TypedValue whole(Number given) throws SQLException {
        return switch (type) {
            case Types.TINYINT -> TypedValue.ofLocal(Rep.BYTE,
                    (byte) within(given, Byte.MIN_VALUE, Byte.MAX_VALUE));
            case Types.SMALLINT -> TypedValue.ofLocal(Rep.SHORT,
                    (short) within(given, Short.MIN_VALUE, Short.MAX_VALUE));
            case Types.INTEGER -> TypedValue.ofLocal(Rep.INTEGER,
                    (int) within(given, Integer.MIN_VALUE, Integer.MAX_VALUE));
            default -> TypedValue.ofLocal(Rep.LONG,
                    within(given, Long.MIN_VALUE, Long.MAX_VALUE));
        };
    }

    private long within(Number given, long least, long most) throws SQLException {
        BigDecimal exact = exact(given);
        if (exact == null || exact.compareTo(BigDecimal.valueOf(least)) < 0
                || exact.compareTo(BigDecimal.valueOf(most)) > 0
                || exact.stripTrailingZeros().scale() > 0) {
            throw mistake("a whole number from " + least + " to " + most, given);
        }
        return exact.longValueExact();
    }

    /** Nearest to it; what is beyond all numbers of the type is none of them. */
    private TypedValue approximate(Number given) throws SQLException {
        BigDecimal exact = exact(given);
        if (type == Types.REAL) {
            float near = given.floatValue();
            if (exact != null && Float.isInfinite(near)) {
                throw mistake(given);
            }
            return TypedValue.ofLocal(Rep.FLOAT, near);
        }
        double near = given.doubleValue();
        if (exact != null && Double.isInfinite(near)) {
            throw mistake(given);
        }
        return TypedValue.ofLocal(Rep.DOUBLE, near);
    }

    /** Null if it is none. */
    private static BigDecimal exact(Number number) {
        try {
            return number instanceof BigDecimal exact ? exact : new BigDecimal(number.toString());
        } catch (NumberFormatException none) {
            return null;
        }
    }

    private TypedValue ofTruth(TypedValue value, boolean truth) throws SQLException {
        return switch (kind()) {
            case OTHER, TRUTH -> value;
            case TEXT -> TypedValue.ofLocal(Rep.STRING, String.valueOf(truth));
            case WHOLE, DECIMAL, APPROXIMATE -> ofNumber(value, truth ? 1 : 0);
            default -> throw mistake(truth);
        };
    }

    private TypedValue ofBytes(TypedValue value, ByteString bytes) throws SQLException {
        return switch (kind()) {
            case OTHER, BYTES -> value;
            default -> throw mistake("x'" + bytes + "'");
        };
    }

    /** Programs that know no types give all parameters as texts. */
    private TypedValue ofText(TypedValue value, String text) throws SQLException {
        try {
            return switch (kind()) {
                case OTHER, TEXT -> value;
                case WHOLE, DECIMAL, APPROXIMATE -> ofNumber(value, new BigDecimal(text));
                case TRUTH -> {
                    if (!text.equalsIgnoreCase("true") && !text.equalsIgnoreCase("false")) {
                        throw mistake(text);
                    }
                    yield TypedValue.ofLocal(Rep.BOOLEAN, Boolean.valueOf(text));
                }
                case DAY -> TypedValue.ofLocal(Rep.JAVA_SQL_DATE,
                        DateTimeUtils.dateStringToUnixDate(text));
                case TIME -> TypedValue.ofLocal(Rep.JAVA_SQL_TIME,
                        DateTimeUtils.timeStringToUnixDate(text));
                case MOMENT -> TypedValue.ofLocal(Rep.JAVA_SQL_TIMESTAMP,
                        DateTimeUtils.timestampStringToUnixDate(text));
                case BYTES -> throw mistake(text);
            };
        } catch (RuntimeException none) {
            throw mistake(text);
        }
    }

    private SQLException mistake(Object found) {
        return mistake("a value of type " + JDBCType.valueOf(type).getName(), found);
    }

    private SQLException mistake(String expected, Object found) {
        return new SQLException("parameter " + parameter + ": expected " + expected + ", found `"
                + found + "`; cast it in the statement where it may be another one");
    }
}
