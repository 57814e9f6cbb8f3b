package io.entresol.jdbc.internal.statement;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.SQLException;
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

    private static TypedValue moment(LocalDateTime moment) {
        return TypedValue.ofLocal(Rep.JAVA_SQL_TIMESTAMP,
                moment.toInstant(ZoneOffset.UTC).toEpochMilli());
    }
}
