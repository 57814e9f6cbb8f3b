package io.entresol.jdbc.internal.statement;

import io.entresol.jdbc.internal.run.Runs;
import java.math.BigDecimal;
import java.sql.Date;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Calendar;
import java.util.Locale;
import java.util.TimeZone;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.calcite.avatica.AvaticaResultSet;
import org.apache.calcite.avatica.AvaticaStatement;
import org.apache.calcite.avatica.ColumnMetaData;
import org.apache.calcite.avatica.Meta;
import org.apache.calcite.avatica.QueryState;
import org.apache.calcite.avatica.util.ByteString;
import org.apache.calcite.avatica.util.DateTimeUtils;

/**
 * Rows of a result: a failure between two rows is an {@link SQLException}, and a cell has the
 * requested type, or the request fails.
 */
final class Result extends AvaticaResultSet {
    private static final BigDecimal LEAST = BigDecimal.valueOf(Long.MIN_VALUE);
    private static final TimeZone UTC = TimeZone.getTimeZone("UTC");
    private static final BigDecimal MOST = BigDecimal.valueOf(Long.MAX_VALUE);

    /** Is not read; it knows how a cell that is an array looks as a result. */
    private final AvaticaResultSet like;
    /** Rows that the statement gives at most; zero: any. */
    private final long most;
    /** The run of the statement that it is the result of. */
    private final long run;
    private long given;

    Result(AvaticaResultSet like, AvaticaStatement statement, QueryState state,
            Meta.Signature signature, ResultSetMetaData meta, TimeZone zone, Meta.Frame first)
            throws SQLException {
        super(statement, state, signature, meta, zone, first);
        this.like = like;
        this.most = statement.getLargeMaxRows();
        this.run = statement instanceof Runs runs ? runs.run().number() : 0;
    }

    @Override
    protected AvaticaResultSet execute() throws SQLException {
        boolean executed = false;
        try {
            AvaticaResultSet itself = super.execute();
            executed = true;
            return itself;
        } catch (ExceptionInInitializerError constant) {
            // What depends on no row is computed when the code of a statement is loaded.
            throw new IllegalArgumentException(told(constant.getCause()), constant);
        } catch (NumberFormatException failure) {
            throw new IllegalArgumentException(told(failure), failure);
        } finally {
            if (!executed) {
                forgetCancellation();
            }
        }
    }

    @Override
    public void close() {
        super.close();
        forgetCancellation();
    }

    /** A run that is over is what was cancelled; Avatica takes all later ones for cancelled too. */
    private void forgetCancellation() {
        if (statement instanceof Runs runs) {
            runs.run().end(run);
        }
    }

    /** Of prepared statements nobody else counts the rows. */
    @Override
    public boolean next() throws SQLException {
        if (most > 0 && given >= most) {
            checkOpen();
            return false;
        }
        try {
            given++;
            return super.next();
        } catch (RuntimeException failure) {
            throw new SQLException(told(failure), failure);
        }
    }

    private static String told(Throwable failure) {
        String said = failure.getMessage() == null ? failure.toString() : failure.getMessage();
        return failure instanceof NumberFormatException ? "a text that is compared with a "
                + "number, or cast to one, is no number: " + said : said;
    }

    @Override
    public byte getByte(int column) throws SQLException {
        return (byte) whole(column, Byte.MIN_VALUE, Byte.MAX_VALUE);
    }

    @Override
    public byte getByte(String label) throws SQLException {
        return getByte(findColumn(label));
    }

    @Override
    public short getShort(int column) throws SQLException {
        return (short) whole(column, Short.MIN_VALUE, Short.MAX_VALUE);
    }

    @Override
    public short getShort(String label) throws SQLException {
        return getShort(findColumn(label));
    }

    @Override
    public int getInt(int column) throws SQLException {
        return (int) whole(column, Integer.MIN_VALUE, Integer.MAX_VALUE);
    }

    @Override
    public int getInt(String label) throws SQLException {
        return getInt(findColumn(label));
    }

    @Override
    public long getLong(int column) throws SQLException {
        return whole(column, Long.MIN_VALUE, Long.MAX_VALUE);
    }

    @Override
    public long getLong(String label) throws SQLException {
        return getLong(findColumn(label));
    }

    /** A cell without its fraction; Avatica leaves out what does not fit in front of it as well. */
    private long whole(int column, long least, long most) throws SQLException {
        Object cell = getObject(column);
        if (cell == null) {
            return 0;
        }
        Long number = number(column, cell);
        if (number == null || number < least || number > most) {
            throw new SQLException("column " + column + " has " + cell + "; expected a whole "
                    + "number from " + least + " to " + most);
        }
        return number;
    }

    /** Null if it is none that a long can be. */
    private Long number(int column, Object cell) throws SQLException {
        if (cell instanceof Long || cell instanceof Integer) {
            return ((Number) cell).longValue();
        } else if (!(cell instanceof Number) && !(cell instanceof String)) {
            return super.getLong(column);
        }
        try {
            BigDecimal exact = new BigDecimal(cell.toString().strip());
            // What is far beyond takes long to become anything else.
            return exact.compareTo(LEAST) < 0 || exact.compareTo(MOST) > 0 ? null
                    : (Long) exact.longValue();
        } catch (NumberFormatException none) {
            return null;
        }
    }

    private boolean isOf(int column, int type) {
        return column > 0 && column <= columnMetaDataList.size()
                && columnMetaDataList.get(column - 1).type.id == type;
    }

    /** A day is the same one everywhere: it begins where the program is, as JDBC has it. */
    @Override
    public Date getDate(int column) throws SQLException {
        return isOf(column, Types.DATE) ? getDate(column, Calendar.getInstance())
                : super.getDate(column);
    }

    @Override
    public Date getDate(String label) throws SQLException {
        return getDate(findColumn(label));
    }

    /** So is a time of a day. */
    @Override
    public Time getTime(int column) throws SQLException {
        return isOf(column, Types.TIME) ? getTime(column, Calendar.getInstance())
                : super.getTime(column);
    }

    @Override
    public Time getTime(String label) throws SQLException {
        return getTime(findColumn(label));
    }

    @Override
    public Object getObject(int column) throws SQLException {
        if (isServed() && column > 0 && column <= columnMetaDataList.size()
                && Served.isText(columnMetaDataList.get(column - 1).type)) {
            return getString(column);
        }
        return isOf(column, Types.DATE) ? getDate(column)
                : isOf(column, Types.TIME) ? getTime(column) : super.getObject(column);
    }

    @Override
    public Object getObject(String label) throws SQLException {
        return getObject(findColumn(label));
    }

    @Override
    public <T> T getObject(String label, Class<T> type) throws SQLException {
        return getObject(findColumn(label), type);
    }

    /** Avatica has a way to each of these types, and none to a type that is named. */
    @Override
    public <T> T getObject(int column, Class<T> type) throws SQLException {
        Object value = switch (type.getName()) {
            case "java.lang.String" -> getString(column);
            case "java.lang.Boolean" -> getBoolean(column);
            case "java.lang.Byte" -> getByte(column);
            case "java.lang.Short" -> getShort(column);
            case "java.lang.Integer" -> getInt(column);
            case "java.lang.Long" -> getLong(column);
            case "java.lang.Float" -> getFloat(column);
            case "java.lang.Double" -> getDouble(column);
            case "java.math.BigDecimal" -> getBigDecimal(column);
            case "java.sql.Date" -> getDate(column);
            case "java.sql.Time" -> getTime(column);
            case "java.sql.Timestamp" -> getTimestamp(column);
            case "[B" -> getBytes(column);
            case "java.time.LocalDate" -> local(column, LocalDateTime::toLocalDate, Types.DATE);
            case "java.time.LocalTime" -> local(column, LocalDateTime::toLocalTime, Types.TIME);
            case "java.time.LocalDateTime" -> local(column, moment -> moment, Types.TIMESTAMP);
            case "java.time.Instant" -> moment(column, ZonedDateTime::toInstant);
            case "java.time.OffsetDateTime" -> moment(column, ZonedDateTime::toOffsetDateTime);
            case "java.time.ZonedDateTime" -> moment(column, moment -> moment);
            default -> getObject(column);
        };
        if (wasNull() || value == null) {
            return null;
        } else if (!type.isInstance(value)) {
            throw new SQLException("column " + column + " has a " + value.getClass().getName()
                    + "; expected one that can be a " + type.getName());
        }
        return type.cast(value);
    }

    /** A part of a day and a time; the cell itself if it has no such part. */
    private Object local(int column, Function<LocalDateTime, Object> part, int type)
            throws SQLException {
        Calendar utc = calendar(UTC);
        if (isOf(column, Types.TIMESTAMP)) {
            Timestamp moment = super.getTimestamp(column, utc);
            return moment == null ? null : part.apply(LocalDateTime.ofInstant(
                    Instant.ofEpochMilli(DateTimeUtils.sqlTimestampToUnixTimestamp(moment, utc)),
                    ZoneOffset.UTC));
        } else if (isOf(column, Types.DATE) && type == Types.DATE) {
            Date day = super.getDate(column, utc);
            return day == null ? null
                    : LocalDate.ofEpochDay(DateTimeUtils.sqlDateToUnixDate(day, utc));
        } else if (isOf(column, Types.TIME) && type == Types.TIME) {
            Time time = super.getTime(column, utc);
            return time == null ? null : LocalTime.ofNanoOfDay(TimeUnit.MILLISECONDS.toNanos(
                    DateTimeUtils.sqlTimeToUnixTime(time, utc)));
        }
        return getObject(column);
    }

    /** A moment in the zone of the connection; the cell itself if it is none. */
    private Object moment(int column, Function<ZonedDateTime, Object> form) throws SQLException {
        ZoneId zone = getLocalCalendar().getTimeZone().toZoneId();
        return local(column, moment -> form.apply(moment.atZone(zone)), Types.TIMESTAMP);
    }

    private boolean isServed() {
        return Served.is(statement.connection);
    }

    /**
     * Avatica's server asks for the first rows in UTC and for more in the zone of its program, and
     * takes what it gets for days and milliseconds since 1970 by the calendar of today.
     */
    @Override
    public Date getDate(int column, Calendar zone) throws SQLException {
        Calendar utc = calendar(UTC);
        Date day = super.getDate(column, isServed() ? utc : zone);
        return day == null || !isServed() ? day : new Date(
                TimeUnit.DAYS.toMillis(DateTimeUtils.sqlDateToUnixDate(day, utc)));
    }

    @Override
    public Time getTime(int column, Calendar zone) throws SQLException {
        return super.getTime(column, isServed() ? calendar(UTC) : zone);
    }

    @Override
    public Timestamp getTimestamp(int column, Calendar zone) throws SQLException {
        Calendar utc = calendar(UTC);
        Timestamp moment = super.getTimestamp(column, isServed() ? utc : zone);
        return moment == null || !isServed() ? moment
                : new Timestamp(DateTimeUtils.sqlTimestampToUnixTimestamp(moment, utc));
    }

    /** Bytes as the digits of each. */
    @Override
    public String getString(int column) throws SQLException {
        if (!isOf(column, Types.BINARY) && !isOf(column, Types.VARBINARY)) {
            return super.getString(column);
        }
        byte[] bytes = getBytes(column);
        return bytes == null ? null : new ByteString(bytes).toString();
    }

    @Override
    public String getString(String label) throws SQLException {
        return getString(findColumn(label));
    }

    private static Calendar calendar(TimeZone zone) {
        return Calendar.getInstance(zone, Locale.ROOT);
    }

    @Override
    public ResultSet create(ColumnMetaData.AvaticaType type, Iterable<Object> cells)
            throws SQLException {
        if (isServed()) {
            // Avatica's server expects numbers before the cells, unless there is no such result.
            throw new SQLFeatureNotSupportedException("cells of an array are read as an array");
        }
        return like.create(type, cells);
    }
}
