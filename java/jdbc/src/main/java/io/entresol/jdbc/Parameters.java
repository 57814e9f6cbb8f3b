package io.entresol.jdbc;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.temporal.Temporal;
import java.util.Calendar;
import java.util.Locale;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.calcite.avatica.ColumnMetaData.Rep;
import org.apache.calcite.avatica.remote.TypedValue;
import org.apache.calcite.avatica.util.DateTimeUtils;

/** Objects that parameters are set to, as Avatica knows them. */
final class Parameters {
    private Parameters() {}

    /** Whether a value can be one kind of parameter only, whatever type is named beside it. */
    static boolean hasOneForm(Object value) {
        return value instanceof Temporal || value instanceof UUID;
    }

    /** The value of a parameter; moments are in a zone, as those of results are. */
    static TypedValue of(int parameter, Object value, Calendar zone) throws SQLException {
        ZoneId here = zone.getTimeZone().toZoneId();
        if (value instanceof LocalDate day) {
            return TypedValue.ofLocal(Rep.JAVA_SQL_DATE, (int) day.toEpochDay());
        } else if (value instanceof LocalTime time) {
            return TypedValue.ofLocal(Rep.JAVA_SQL_TIME,
                    (int) TimeUnit.NANOSECONDS.toMillis(time.toNanoOfDay()));
        } else if (value instanceof LocalDateTime moment) {
            return moment(moment);
        } else if (value instanceof Instant moment) {
            return moment(LocalDateTime.ofInstant(moment, here));
        } else if (value instanceof OffsetDateTime moment) {
            return moment(LocalDateTime.ofInstant(moment.toInstant(), here));
        } else if (value instanceof ZonedDateTime moment) {
            return moment(LocalDateTime.ofInstant(moment.toInstant(), here));
        }
        Object plain = value instanceof BigInteger number ? new BigDecimal(number)
                : value instanceof UUID || value instanceof Character ? value.toString() : value;
        if (plain != null && Rep.of(plain.getClass()) == Rep.OBJECT) {
            throw new SQLException("parameter " + parameter + ": expected a value of a type that "
                    + "columns have, found a " + value.getClass().getName());
        }
        return TypedValue.ofJdbc(plain, Calendar.getInstance(zone.getTimeZone(), Locale.ROOT));
    }

    /**
     * A value as a parameter of a type has it: Calcite takes of a number what fits, and no texts.
     *
     * @param type that of JDBC, which a statement gives the parameter
     */
    static TypedValue fitted(int parameter, TypedValue value, int type) throws SQLException {
        Object given = value == null ? null : value.toLocal();
        if (given instanceof String text) {
            return ofText(value, text.strip(), type);
        } else if (!(given instanceof Number) || isMoment(value)) {
            return value;
        }
        BigDecimal exact = exact(given);
        long[] range = switch (type) {
            case Types.TINYINT -> new long[] {Byte.MIN_VALUE, Byte.MAX_VALUE};
            case Types.SMALLINT -> new long[] {Short.MIN_VALUE, Short.MAX_VALUE};
            case Types.INTEGER -> new long[] {Integer.MIN_VALUE, Integer.MAX_VALUE};
            case Types.BIGINT -> new long[] {Long.MIN_VALUE, Long.MAX_VALUE};
            default -> null;
        };
        if (range != null && (exact == null || exact.stripTrailingZeros().scale() > 0
                || exact.compareTo(BigDecimal.valueOf(range[0])) < 0
                || exact.compareTo(BigDecimal.valueOf(range[1])) > 0)) {
            throw new SQLException("parameter " + parameter + ": expected a whole number from "
                    + range[0] + " to " + range[1] + ", found `" + given
                    + "`; cast it in the statement where it may be another one");
        }
        return value;
    }

    private static boolean isMoment(TypedValue value) {
        return switch (value.type) {
            case JAVA_SQL_DATE, JAVA_SQL_TIME, JAVA_SQL_TIMESTAMP, JAVA_UTIL_DATE -> true;
            default -> false;
        };
    }

    /** Null if it is none. */
    private static BigDecimal exact(Object number) {
        try {
            return number instanceof BigDecimal exact ? exact : new BigDecimal(number.toString());
        } catch (NumberFormatException none) {
            return null;
        }
    }

    /** Programs that know no types give all parameters as texts; what is none stays one. */
    private static TypedValue ofText(TypedValue value, String text, int type) {
        try {
            return switch (type) {
                case Types.TINYINT, Types.SMALLINT, Types.INTEGER, Types.BIGINT, Types.DECIMAL,
                        Types.NUMERIC, Types.REAL, Types.FLOAT, Types.DOUBLE ->
                        TypedValue.ofLocal(Rep.NUMBER, new BigDecimal(text));
                case Types.BOOLEAN -> text.equalsIgnoreCase("true")
                        || text.equalsIgnoreCase("false")
                        ? TypedValue.ofLocal(Rep.BOOLEAN, Boolean.valueOf(text)) : value;
                case Types.DATE -> TypedValue.ofLocal(Rep.JAVA_SQL_DATE,
                        DateTimeUtils.dateStringToUnixDate(text));
                case Types.TIME -> TypedValue.ofLocal(Rep.JAVA_SQL_TIME,
                        DateTimeUtils.timeStringToUnixDate(text));
                case Types.TIMESTAMP -> TypedValue.ofLocal(Rep.JAVA_SQL_TIMESTAMP,
                        DateTimeUtils.timestampStringToUnixDate(text));
                default -> value;
            };
        } catch (RuntimeException none) {
            return value;
        }
    }

    private static TypedValue moment(LocalDateTime moment) {
        return TypedValue.ofLocal(Rep.JAVA_SQL_TIMESTAMP,
                moment.toInstant(ZoneOffset.UTC).toEpochMilli());
    }
}
