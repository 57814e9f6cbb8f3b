package io.entresol.jdbc;

import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.util.Properties;
import java.util.TimeZone;
import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.avatica.AvaticaFactory;
import org.apache.calcite.avatica.AvaticaPreparedStatement;
import org.apache.calcite.avatica.AvaticaResultSet;
import org.apache.calcite.avatica.AvaticaSpecificDatabaseMetaData;
import org.apache.calcite.avatica.AvaticaStatement;
import org.apache.calcite.avatica.ColumnMetaData;
import org.apache.calcite.avatica.Meta;
import org.apache.calcite.avatica.QueryState;
import org.apache.calcite.avatica.UnregisteredDriver;
import org.apache.calcite.jdbc.CalciteConnection;

/**
 * Makes what another factory makes, and results that fail as JDBC has it: what goes wrong between
 * two rows is an {@link SQLException}, which Avatica passes on as whatever it was.
 */
final class ResultFactory implements AvaticaFactory {
    private final AvaticaFactory plain;

    ResultFactory(AvaticaFactory plain) {
        this.plain = plain;
    }

    @Override
    public int getJdbcMajorVersion() {
        return plain.getJdbcMajorVersion();
    }

    @Override
    public int getJdbcMinorVersion() {
        return plain.getJdbcMinorVersion();
    }

    @Override
    public AvaticaConnection newConnection(UnregisteredDriver driver, AvaticaFactory factory,
            String url, Properties properties) throws SQLException {
        return plain.newConnection(driver, factory, url, properties);
    }

    @Override
    public AvaticaStatement newStatement(AvaticaConnection connection,
            Meta.StatementHandle handle, int type, int concurrency, int holdability)
            throws SQLException {
        return limited(connection,
                plain.newStatement(connection, handle, type, concurrency, holdability));
    }

    @Override
    public AvaticaPreparedStatement newPreparedStatement(AvaticaConnection connection,
            Meta.StatementHandle handle, Meta.Signature signature, int type, int concurrency,
            int holdability) throws SQLException {
        return limited(connection, plain.newPreparedStatement(connection, handle, signature, type,
                concurrency, holdability));
    }

    /** With the timeout that the connection has for its statements until they are given another. */
    private static <S extends AvaticaStatement> S limited(AvaticaConnection connection,
            S statement) throws SQLException {
        if (connection instanceof CalciteConnection ours) {
            int seconds = Driver.timeout(ours.getProperties());
            if (seconds > 0) {
                statement.setQueryTimeout(seconds);
            }
        }
        return statement;
    }

    @Override
    public AvaticaResultSet newResultSet(AvaticaStatement statement, QueryState state,
            Meta.Signature signature, TimeZone zone, Meta.Frame first) throws SQLException {
        return new Result(plain.newResultSet(statement, state, signature, zone, first), statement,
                state, signature, newResultSetMetaData(statement, signature), zone, first);
    }

    @Override
    public AvaticaSpecificDatabaseMetaData newDatabaseMetaData(AvaticaConnection connection) {
        return plain.newDatabaseMetaData(connection);
    }

    @Override
    public ResultSetMetaData newResultSetMetaData(AvaticaStatement statement,
            Meta.Signature signature) throws SQLException {
        return plain.newResultSetMetaData(statement, signature);
    }

    private static final class Result extends AvaticaResultSet {
        /** Is not read; it knows how a cell that is an array looks as a result. */
        private final AvaticaResultSet like;

        Result(AvaticaResultSet like, AvaticaStatement statement, QueryState state,
                Meta.Signature signature, ResultSetMetaData meta, TimeZone zone, Meta.Frame first)
                throws SQLException {
            super(statement, state, signature, meta, zone, first);
            this.like = like;
        }

        @Override
        protected AvaticaResultSet execute() throws SQLException {
            try {
                return super.execute();
            } catch (ExceptionInInitializerError constant) {
                // What depends on no row is computed when the code of a statement is loaded.
                throw new IllegalArgumentException(told(constant.getCause()), constant);
            } catch (NumberFormatException failure) {
                throw new IllegalArgumentException(told(failure), failure);
            }
        }

        @Override
        public boolean next() throws SQLException {
            try {
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
        public <T> T getObject(String label, Class<T> type) throws SQLException {
            return getObject(findColumn(label), type);
        }

        /** Avatica has a way to each of these types, and none to a type that is named. */
        @Override
        public <T> T getObject(int column, Class<T> type) throws SQLException {
            Object value = switch (type.getName()) {
                case "java.lang.String" -> getString(column);
                case "java.lang.Boolean" -> getBoolean(column);
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

        @Override
        public ResultSet create(ColumnMetaData.AvaticaType type, Iterable<Object> cells)
                throws SQLException {
            return like.create(type, cells);
        }
    }
}
