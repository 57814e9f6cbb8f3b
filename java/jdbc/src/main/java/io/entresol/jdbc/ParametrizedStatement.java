package io.entresol.jdbc;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.avatica.AvaticaPreparedStatement;
import org.apache.calcite.avatica.Meta;
import org.apache.calcite.avatica.remote.TypedValue;
import org.apache.calcite.jdbc.CalciteConnection;

/** A statement that is prepared, in this process or another one. */
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

    /** Not the next run; and it waits for no lock that a run holds. */
    @Override
    public void cancel() throws SQLException {
        checkOpen();
        run.cancel();
    }

    @Override
    public boolean execute() throws SQLException {
        return run.of(super::execute);
    }

    @Override
    public ResultSet executeQuery() throws SQLException {
        return run.of(super::executeQuery);
    }

    @Override
    public long executeLargeUpdate() throws SQLException {
        return run.of(super::executeLargeUpdate);
    }

    @Override
    public long[] executeLargeBatch() throws SQLException {
        if (!(connection instanceof CalciteConnection)) {
            return run.of(() -> Batch.sent(super::executeLargeBatch));
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
            return run.of(() -> Batch.carryOut(changes));
        } finally {
            System.arraycopy(current, 0, slots, 0, slots.length);
        }
    }
}
