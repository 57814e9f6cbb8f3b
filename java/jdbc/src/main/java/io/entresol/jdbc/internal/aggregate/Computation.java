package io.entresol.jdbc.internal.aggregate;

import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.dialect.Exchange;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.calcite.DataContext;
import org.apache.calcite.DataContexts;
import org.apache.calcite.linq4j.function.Function1;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexExecutorImpl;
import org.apache.calcite.rex.RexNode;

/** {@link Formulas} of rows, computed by the code that Calcite generates. */
public final class Computation {
    /** The cells of a row in what is computed, where that code expects them. */
    private static final String ROW = "inputRecord";
    private static final int KEPT_MAX = 100;
    /** Making code takes as long as thousands of rows, and a question comes in many parts. */
    private static final Map<Source, Code> KEPT = new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Source, Code> eldest) {
            return size() > KEPT_MAX;
        }
    };

    private final Code code;
    private final Map<String, Object> given;
    private Object[] cells;
    private final DataContext run = DataContexts.of(this::get);

    private Computation(Code code, Map<String, Object> given) {
        this.code = code;
        this.given = given;
    }

    private record Source(Formulas formulas, String columns) {}

    /** Either may be null: there is nothing of the kind. */
    private record Code(Function1<DataContext, Object[]> condition,
            Function1<DataContext, Object[]> values) {}

    /**
     * Of rows of columns, for one thread.
     *
     * @param given the parameters, by their names
     */
    public static Computation of(Formulas formulas, List<Column> columns,
            Map<String, Object> given) {
        if (formulas.areNone()) {
            return new Computation(new Code(null, null), given);
        }
        RelDataType row = Formulas.row(columns);
        Source source = new Source(formulas, row.getFullTypeString());
        Code code;
        synchronized (KEPT) {
            code = KEPT.get(source);
        }
        if (code == null) {
            RexNode condition = formulas.conditionNode(row);
            code = new Code(condition == null ? null : code(List.of(condition), row),
                    formulas.values().isEmpty() ? null : code(formulas.nodes(row), row));
            synchronized (KEPT) {
                KEPT.put(source, code);
            }
        }
        return new Computation(code, given);
    }

    private static Function1<DataContext, Object[]> code(List<RexNode> nodes, RelDataType row) {
        RexBuilder builder = Formulas.builder();
        return RexExecutorImpl.getExecutable(builder,
                new Exchange(builder, Exchange.Arithmetic.CHECKED).apply(nodes), row)
                .getFunction();
    }

    private Object get(String name) {
        return name.equals(ROW) ? cells : given.get(name);
    }

    /** The row with what is computed of it behind its cells; null if it does not count. */
    public Object[] of(Object[] row) {
        cells = row;
        // What is not asked of a row may fail there.
        if (code.condition != null && !Boolean.TRUE.equals(code.condition.apply(run)[0])) {
            return null;
        } else if (code.values == null) {
            return row;
        }
        Object[] computed = code.values.apply(run);
        Object[] all = Arrays.copyOf(row, row.length + computed.length);
        System.arraycopy(computed, 0, all, row.length, computed.length);
        return all;
    }
}
