package io.entresol.jdbc.internal.run;

import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.calcite.DataContext;
import org.apache.calcite.adapter.enumerable.CallImplementor;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.schema.FunctionParameter;
import org.apache.calcite.schema.ImplementableFunction;
import org.apache.calcite.schema.ScalarFunction;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * A function that a condition calls for each pair of rows that it tries: it is always true, or ends
 * a cancelled run. For the code generated for a statement, not for other uses.
 */
public final class GoesOn implements ScalarFunction, ImplementableFunction {
    public GoesOn() {}

    /** Whether the run goes on; looks by chance, which needs no memory that threads share. */
    public static boolean goesOn(DataContext run) {
        if (ThreadLocalRandom.current().nextInt() >>> 24 == 0) {
            Cancellation.of(run).check();
        }
        return true;
    }

    @Override
    public List<FunctionParameter> getParameters() {
        return List.of();
    }

    @Override
    public RelDataType getReturnType(RelDataTypeFactory factory) {
        return factory.createSqlType(SqlTypeName.BOOLEAN);
    }

    @Override
    public CallImplementor getImplementor() {
        return (translator, call, nulls) -> Expressions.call(
                GoesOn.class, "goesOn", DataContext.ROOT);
    }
}
