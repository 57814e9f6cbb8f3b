package io.entresol.jdbc;

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
import org.apache.calcite.avatica.Meta;
import org.apache.calcite.avatica.QueryState;
import org.apache.calcite.avatica.UnregisteredDriver;
import org.apache.calcite.jdbc.CalciteConnection;

/** Makes what another factory makes, and results that do what JDBC says: {@link Result}. */
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
}
