package io.entresol.jdbc.internal.statement;

import io.entresol.jdbc.internal.run.Run;
import io.entresol.jdbc.internal.run.Runs;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.avatica.AvaticaStatement;
import org.apache.calcite.avatica.Meta;
import org.apache.calcite.jdbc.CalciteConnection;

/** A statement that gets its SQL when it runs, in this process or another one. */
final class DirectStatement extends AvaticaStatement implements Runs {
    private final Run run = new Run(cancelFlag);
    private final List<String> batch = new ArrayList<>();

    DirectStatement(AvaticaConnection connection, Meta.StatementHandle handle, int type,
            int concurrency, int holdability) {
        super(connection, handle, type, concurrency, holdability);
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

    @Override
    public boolean execute(String sql) throws SQLException {
        return Unfinished.noted(connection, rows -> !rows, () -> run.of(() -> super.execute(sql)));
    }

    @Override
    public ResultSet executeQuery(String sql) throws SQLException {
        return run.of(() -> super.executeQuery(sql));
    }

    @Override
    public long executeLargeUpdate(String sql) throws SQLException {
        return Unfinished.noted(connection, any -> true,
                () -> run.of(() -> super.executeLargeUpdate(sql)));
    }

    @Override
    public void addBatch(String sql) throws SQLException {
        super.addBatch(sql);
        batch.add(sql);
    }

    @Override
    public void clearBatch() throws SQLException {
        super.clearBatch();
        batch.clear();
    }

    @Override
    public long[] executeLargeBatch() throws SQLException {
        if (!(connection instanceof CalciteConnection)) {
            return Unfinished.noted(connection, any -> true,
                    () -> run.of(() -> Batch.sent(super::executeLargeBatch)));
        }
        List<Batch.Change> changes = new ArrayList<>();
        batch.forEach(sql -> changes.add(() -> {
            run.check();
            return super.executeLargeUpdate(sql);
        }));
        clearBatch();
        return Unfinished.noted(connection, any -> true,
                () -> run.of(() -> Batch.carryOut(changes)));
    }
}
