package io.entresol.jdbc.internal.dialect;

import java.util.Locale;
import org.apache.calcite.sql.SqlBasicCall;
import org.apache.calcite.sql.SqlCall;
import org.apache.calcite.sql.SqlJdbcFunctionCall;
import org.apache.calcite.sql.SqlNode;
import org.apache.calcite.sql.util.SqlBasicVisitor;

/** Functions of JDBC, as {@code {fn ucase(name)}}, in letters of either case: Calcite knows capitals. */
public final class JdbcFunctions extends SqlBasicVisitor<Void> {
    private static final String BEFORE = "{fn ";

    /** Changes a statement that was parsed. */
    public static void inCapitals(SqlNode statement) {
        statement.accept(new JdbcFunctions());
    }

    @Override
    public Void visit(SqlCall call) {
        if (call instanceof SqlBasicCall basic
                && call.getOperator() instanceof SqlJdbcFunctionCall function) {
            String name = function.getName();
            basic.setOperator(new SqlJdbcFunctionCall(
                    name.substring(BEFORE.length(), name.length() - 1).toUpperCase(Locale.ROOT)));
        }
        return super.visit(call);
    }
}
