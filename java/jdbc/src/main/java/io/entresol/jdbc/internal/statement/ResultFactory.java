package io.entresol.jdbc.internal.statement;

import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Collections;
import java.util.Map;
import java.util.Properties;
import java.util.TimeZone;
import java.util.WeakHashMap;
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

/** Makes the objects of another factory, but statements and results that act as JDBC says. */
public final class ResultFactory implements AvaticaFactory {
    /** Statements beside those that Calcite was given, until they are asked for. */
    private static final Map<AvaticaStatement, AvaticaStatement> OURS =
            Collections.synchronizedMap(new WeakHashMap<>());

    private final AvaticaFactory plain;

    public ResultFactory(AvaticaFactory plain) {
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

    /**
     * The statement that is to be used. Calcite takes none from a factory but its own, which works
     * until ours, which shares its handle, takes its place in the connection.
     */
    static <S extends Statement> S ours(Class<S> type, Statement made) throws SQLException {
        AvaticaStatement plain = made.unwrap(AvaticaStatement.class);
        AvaticaStatement ours = OURS.remove(plain);
        if (ours == null) {
            return type.cast(made);
        }
        ours.connection.statementMap.put(ours.getId(), ours);
        return type.cast(ours);
    }

    private static <S extends AvaticaStatement> S known(S made, S ours) throws SQLException {
        if (made == null) {
            return limited(ours);
        }
        OURS.put(made, limited(ours));
        made.connection.statementMap.put(made.getId(), made);
        return limited(made);
    }

    @Override
    public AvaticaStatement newStatement(AvaticaConnection connection,
            Meta.StatementHandle handle, int type, int concurrency, int holdability)
            throws SQLException {
        AvaticaStatement made = connection instanceof CalciteConnection
                ? plain.newStatement(connection, handle, type, concurrency, holdability) : null;
        return known(made, new DirectStatement(connection, made == null ? handle : made.handle,
                type, concurrency, holdability));
    }

    @Override
    public AvaticaPreparedStatement newPreparedStatement(AvaticaConnection connection,
            Meta.StatementHandle handle, Meta.Signature signature, int type, int concurrency,
            int holdability) throws SQLException {
        AvaticaPreparedStatement made = connection instanceof CalciteConnection
                ? plain.newPreparedStatement(connection, handle, signature, type, concurrency,
                        holdability) : null;
        return known(made, new ParametrizedStatement(connection,
                made == null ? handle : made.handle, signature, type, concurrency, holdability));
    }

    /** With the timeout that the connection has for its statements until they are given another. */
    private static <S extends AvaticaStatement> S limited(S statement) throws SQLException {
        if (statement.connection instanceof CalciteConnection ours) {
            int seconds = Timeout.of(ours.getProperties());
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
        return new MetaData(connection);
    }

    @Override
    public ResultSetMetaData newResultSetMetaData(AvaticaStatement statement,
            Meta.Signature signature) throws SQLException {
        if (signature == null) {
            return plain.newResultSetMetaData(statement, null);
        }
        Meta.Signature sized = DisplaySizes.in(signature);
        return plain.newResultSetMetaData(statement,
                Served.is(statement.connection) ? Served.told(sized) : sized);
    }
}
