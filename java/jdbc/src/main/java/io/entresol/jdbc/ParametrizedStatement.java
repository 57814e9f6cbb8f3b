package io.entresol.jdbc;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.avatica.AvaticaPreparedStatement;
import org.apache.calcite.avatica.Meta;
import org.apache.calcite.avatica.remote.TypedValue;
import org.apache.calcite.jdbc.CalciteConnection;

/** A statement that is prepared, in this process or another one. */
final class ParametrizedStatement extends AvaticaPreparedStatement {
    ParametrizedStatement(AvaticaConnection connection, Meta.StatementHandle handle,
            Meta.Signature signature, int type, int concurrency, int holdability)
            throws SQLException {
        super(connection, handle, signature, type, concurrency, holdability);
    }

    @Override
    public long[] executeLargeBatch() throws SQLException {
        if (!(connection instanceof CalciteConnection)) {
            return Batch.sent(super::executeLargeBatch);
        }
        checkOpen();
        TypedValue[] current = slots.clone();
        List<Batch.Change> changes = new ArrayList<>();
        for (List<TypedValue> values : List.copyOf(parameterValueBatch)) {
            changes.add(() -> {
                System.arraycopy(values.toArray(), 0, slots, 0, slots.length);
                return super.executeLargeUpdate();
            });
        }
        parameterValueBatch.clear();
        try {
            return Batch.carryOut(changes);
        } finally {
            System.arraycopy(current, 0, slots, 0, slots.length);
        }
    }
}
