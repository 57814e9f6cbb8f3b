package io.entresol.jdbc.internal.statement;

import io.entresol.jdbc.internal.run.Run;
import io.entresol.jdbc.internal.run.Runs;
import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.sql.Array;
import java.sql.Blob;
import java.sql.Clob;
import java.sql.Date;
import java.sql.NClob;
import java.sql.Ref;
import java.sql.ResultSet;
import java.sql.RowId;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.SQLXML;
import java.sql.Time;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Calendar;
import java.util.List;
import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.avatica.AvaticaPreparedStatement;
import org.apache.calcite.avatica.Meta;
import org.apache.calcite.avatica.remote.TypedValue;
import org.apache.calcite.jdbc.CalciteConnection;

/**
 * A prepared statement, in this process or another one. A parameter has the value that it is set
 * to, or setting it fails; with some setters Avatica would leave the value of the run before.
 */
final class ParametrizedStatement extends AvaticaPreparedStatement implements Runs {
    private final Run run = new Run(cancelFlag);

    ParametrizedStatement(AvaticaConnection connection, Meta.StatementHandle handle,
            Meta.Signature signature, int type, int concurrency, int holdability)
            throws SQLException {
        super(connection, handle, signature, type, concurrency, holdability);
    }

    @Override
    public Run run() {
        return run;
    }

    /** None is as many as one likes, and not, as Avatica has it, no more after the first ones. */
    @Override
    public void setFetchSize(int rows) throws SQLException {
        super.setFetchSize(rows == 0 ? DEFAULT_FETCH_SIZE : rows);
    }

    /** What it does ends, also where its result is closed before that has looked. */
    @Override
    public void close() throws SQLException {
        run.close();
        super.close();
    }

    /** Not the next run; and it waits for no lock that a run holds. */
    @Override
    public void cancel() throws SQLException {
        checkOpen();
        run.cancel();
        if (!(connection instanceof CalciteConnection)) {
            RemoteCancel.of(this);
        }
    }

    private void fit() throws SQLException {
        for (int place = 0; place < slots.length; place++) {
            slots[place] = new ParameterType(place + 1, getParameter(place + 1).parameterType)
                    .fitted(slots[place]);
        }
    }

    @Override
    public boolean execute() throws SQLException {
        fit();
        return Unfinished.noted(connection, rows -> !rows, () -> run.of(super::execute));
    }

    @Override
    public ResultSet executeQuery() throws SQLException {
        fit();
        return run.of(super::executeQuery);
    }

    @Override
    public long executeLargeUpdate() throws SQLException {
        fit();
        return Unfinished.noted(connection, any -> true,
                () -> run.of(super::executeLargeUpdate));
    }

    @Override
    public void addBatch() throws SQLException {
        fit();
        super.addBatch();
    }

    @Override
    public long[] executeLargeBatch() throws SQLException {
        if (!(connection instanceof CalciteConnection)) {
            return Unfinished.noted(connection, any -> true,
                    () -> run.of(() -> Batch.sent(super::executeLargeBatch)));
        }
        checkOpen();
        TypedValue[] current = slots.clone();
        List<Batch.Change> changes = new ArrayList<>();
        for (List<TypedValue> values : List.copyOf(parameterValueBatch)) {
            changes.add(() -> {
                run.check();
                System.arraycopy(values.toArray(), 0, slots, 0, slots.length);
                return super.executeLargeUpdate();
            });
        }
        parameterValueBatch.clear();
        try {
            return Unfinished.noted(connection, any -> true,
                    () -> run.of(() -> Batch.carryOut(changes)));
        } finally {
            System.arraycopy(current, 0, slots, 0, slots.length);
        }
    }

    /** A day is the same one everywhere: it begins where the program is, as JDBC has it. */
    @Override
    public void setDate(int parameter, Date day) throws SQLException {
        setDate(parameter, day, Calendar.getInstance());
    }

    /** So is a time of a day. */
    @Override
    public void setTime(int parameter, Time time) throws SQLException {
        setTime(parameter, time, Calendar.getInstance());
    }

    @Override
    public void setNull(int parameter, int type, String name) throws SQLException {
        setNull(parameter, type);
    }

    @Override
    public void setObject(int parameter, Object value) throws SQLException {
        if (value instanceof Date day) {
            setDate(parameter, day);
        } else if (value instanceof Time time) {
            setTime(parameter, time);
        } else if (value instanceof Array cells) {
            setArray(parameter, cells);
        } else if (value instanceof Clob text) {
            setClob(parameter, text);
        } else if (value instanceof Blob bytes) {
            setBlob(parameter, bytes);
        } else if (value instanceof Reader text) {
            setCharacterStream(parameter, text);
        } else if (value instanceof InputStream bytes) {
            setBinaryStream(parameter, bytes);
        } else {
            slots[place(parameter)] = Parameters.of(parameter, value, zone());
        }
    }

    @Override
    public void setObject(int parameter, Object value, int type) throws SQLException {
        if (value == null || Parameters.hasOneForm(value) || value instanceof Clob
                || value instanceof Blob || value instanceof Reader
                || value instanceof InputStream) {
            setObject(parameter, value);
            return;
        }
        try {
            if (type == Types.DATE && value instanceof Date day) {
                setDate(parameter, day);
            } else if (type == Types.TIME && value instanceof Time time) {
                setTime(parameter, time);
            } else {
                super.setObject(parameter, value, type);
            }
        } catch (RuntimeException failure) {
            throw new SQLException("parameter " + parameter + ": expected a value that can be of "
                    + "JDBC's type " + type + ", found `" + value + "`", failure);
        }
    }

    @Override
    public void setObject(int parameter, Object value, int type, int scale) throws SQLException {
        setObject(parameter, value, type);
        boolean decimal = type == Types.DECIMAL || type == Types.NUMERIC;
        if (decimal && slots[parameter - 1].toLocal() instanceof BigDecimal number) {
            setBigDecimal(parameter, number.setScale(scale, RoundingMode.HALF_UP));
        }
    }

    /** Avatica's server gives moments in the zone of its program, which it has from UTC. */
    private Calendar zone() {
        return Served.is(connection) ? Calendar.getInstance() : getCalendar();
    }

    private int place(int parameter) throws SQLException {
        checkOpen();
        getParameter(parameter);
        return parameter - 1;
    }

    private interface Content<T> {
        T read() throws IOException;
    }

    private static <T> T read(int parameter, Content<T> content) throws SQLException {
        try {
            return content.read();
        } catch (IOException failure) {
            throw new SQLException("parameter " + parameter + " cannot be read: "
                    + failure.getMessage(), failure);
        }
    }

    private void text(int parameter, Reader text, long length) throws SQLException {
        String all = text == null ? "" : read(parameter, () -> {
            StringWriter read = new StringWriter();
            text.transferTo(read);
            return read.toString();
        });
        setString(parameter, text == null ? null
                : all.substring(0, (int) Math.min(length, all.length())));
    }

    private void bytes(int parameter, InputStream bytes, long length) throws SQLException {
        setBytes(parameter, bytes == null ? null : read(parameter,
                () -> bytes.readNBytes((int) Math.min(length, Integer.MAX_VALUE))));
    }

    private void ascii(int parameter, InputStream bytes, long length) throws SQLException {
        setString(parameter, bytes == null ? null : read(parameter, () -> new String(
                bytes.readNBytes((int) Math.min(length, Integer.MAX_VALUE)),
                StandardCharsets.US_ASCII)));
    }

    @Override
    public void setAsciiStream(int parameter, InputStream text, int length) throws SQLException {
        ascii(parameter, text, length);
    }

    @Override
    public void setAsciiStream(int parameter, InputStream text, long length) throws SQLException {
        ascii(parameter, text, length);
    }

    @Override
    public void setAsciiStream(int parameter, InputStream text) throws SQLException {
        ascii(parameter, text, Long.MAX_VALUE);
    }

    @Override
    public void setBinaryStream(int parameter, InputStream bytes, int length)
            throws SQLException {
        bytes(parameter, bytes, length);
    }

    @Override
    public void setBinaryStream(int parameter, InputStream bytes, long length)
            throws SQLException {
        bytes(parameter, bytes, length);
    }

    @Override
    public void setBinaryStream(int parameter, InputStream bytes) throws SQLException {
        bytes(parameter, bytes, Long.MAX_VALUE);
    }

    @Override
    public void setBlob(int parameter, InputStream bytes, long length) throws SQLException {
        bytes(parameter, bytes, length);
    }

    @Override
    public void setBlob(int parameter, InputStream bytes) throws SQLException {
        bytes(parameter, bytes, Long.MAX_VALUE);
    }

    @Override
    public void setBlob(int parameter, Blob bytes) throws SQLException {
        setBinaryStream(parameter, bytes == null ? null : bytes.getBinaryStream());
    }

    @Override
    public void setCharacterStream(int parameter, Reader text, int length) throws SQLException {
        text(parameter, text, length);
    }

    @Override
    public void setCharacterStream(int parameter, Reader text, long length) throws SQLException {
        text(parameter, text, length);
    }

    @Override
    public void setCharacterStream(int parameter, Reader text) throws SQLException {
        text(parameter, text, Long.MAX_VALUE);
    }

    @Override
    public void setNCharacterStream(int parameter, Reader text, long length) throws SQLException {
        text(parameter, text, length);
    }

    @Override
    public void setNCharacterStream(int parameter, Reader text) throws SQLException {
        text(parameter, text, Long.MAX_VALUE);
    }

    @Override
    public void setClob(int parameter, Reader text, long length) throws SQLException {
        text(parameter, text, length);
    }

    @Override
    public void setClob(int parameter, Reader text) throws SQLException {
        text(parameter, text, Long.MAX_VALUE);
    }

    @Override
    public void setClob(int parameter, Clob text) throws SQLException {
        setCharacterStream(parameter, text == null ? null : text.getCharacterStream());
    }

    @Override
    public void setNClob(int parameter, Reader text, long length) throws SQLException {
        text(parameter, text, length);
    }

    @Override
    public void setNClob(int parameter, Reader text) throws SQLException {
        text(parameter, text, Long.MAX_VALUE);
    }

    @Override
    public void setNClob(int parameter, NClob text) throws SQLException {
        setClob(parameter, text);
    }

    @Override
    public void setSQLXML(int parameter, SQLXML text) throws SQLException {
        setString(parameter, text == null ? null : text.getString());
    }

    @Override
    public void setURL(int parameter, URL address) throws SQLException {
        setString(parameter, address == null ? null : address.toString());
    }

    @Override
    @SuppressWarnings("deprecation")
    public void setUnicodeStream(int parameter, InputStream text, int length)
            throws SQLException {
        throw new SQLFeatureNotSupportedException("parameter " + parameter
                + ": expected setCharacterStream, which says what the letters are");
    }

    @Override
    public void setRef(int parameter, Ref reference) throws SQLException {
        throw new SQLFeatureNotSupportedException("parameter " + parameter
                + ": there are no references");
    }

    @Override
    public void setRowId(int parameter, RowId row) throws SQLException {
        throw new SQLFeatureNotSupportedException("parameter " + parameter
                + ": rows are known by their keys");
    }
}
