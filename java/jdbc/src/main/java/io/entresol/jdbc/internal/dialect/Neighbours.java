package io.entresol.jdbc.internal.dialect;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.sql.SqlFunctionCategory;
import org.apache.calcite.sql.SqlOperator;
import org.apache.calcite.sql.SqlOperatorBinding;
import org.apache.calcite.sql.SqlOperatorTable;
import org.apache.calcite.sql.fun.SqlStdOperatorTable;
import org.apache.calcite.util.Optionality;

/**
 * {@code lead} and {@code lag} while a statement is planned; Calcite's functions compute them.
 * Calcite assumes that these are never null if their default is not null. But the default stands
 * for missing rows, and a present row may have null.
 */
public final class Neighbours extends SqlAggFunction {
    private static final Map<SqlOperator, SqlOperator> ALL = Map.of(
            SqlStdOperatorTable.LEAD, new Neighbours(SqlStdOperatorTable.LEAD),
            SqlStdOperatorTable.LAG, new Neighbours(SqlStdOperatorTable.LAG));

    private final SqlAggFunction plain;

    private Neighbours(SqlAggFunction plain) {
        super(plain.getName(), null, plain.getKind(), binding -> type(plain, binding), null,
                Objects.requireNonNull(plain.getOperandTypeChecker()),
                SqlFunctionCategory.NUMERIC, false, true, Optionality.FORBIDDEN);
        this.plain = plain;
    }

    private static RelDataType type(SqlAggFunction plain, SqlOperatorBinding binding) {
        RelDataType type = Objects.requireNonNull(plain.getReturnTypeInference())
                .inferReturnType(binding);
        return type == null ? null : binding.getTypeFactory().createTypeWithNullability(type,
                type.isNullable() || binding.getOperandType(0).isNullable());
    }

    /** A table of operators with these in place of Calcite's. */
    static SqlOperatorTable in(SqlOperatorTable table) {
        return Except.of(SqlOperatorTable.class, table, Map.of(
                "lookupOperatorOverloads", (arguments, plain) -> {
                    plain.result();
                    @SuppressWarnings("unchecked")
                    List<SqlOperator> found = (List<SqlOperator>) arguments[3];
                    found.replaceAll(each -> ALL.getOrDefault(each, each));
                    return null;
                }));
    }

    /** The one of Calcite, which computes it. */
    public SqlAggFunction plain() {
        return plain;
    }

    @Override
    public boolean allowsFraming() {
        return plain.allowsFraming();
    }

    @Override
    public boolean allowsNullTreatment() {
        return plain.allowsNullTreatment();
    }
}
