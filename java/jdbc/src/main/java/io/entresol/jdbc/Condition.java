package io.entresol.jdbc;

import java.util.List;
import java.util.Set;
import org.apache.calcite.DataContext;

/**
 * A condition in Ickle.
 *
 * @param text its text, with {@code %s} for each operand
 * @param operands what it compares with
 * @param present columns that have a value where it holds
 */
record Condition(String text, List<Operand> operands, Set<Column> present) {
    /** A value of a condition that is known when a query is planned or when it is run. */
    interface Operand {
        /** The value as the index has it. */
        Object value(DataContext run);

        /** For people, in plans. */
        String shown();
    }

    /** That a column has a value. */
    static Condition present(Column column) {
        return new Condition(column.ickle() + " is not null", List.of(), Set.of(column));
    }

    static Operand constant(Object field) {
        return new Operand() {
            @Override
            public Object value(DataContext run) {
                return field;
            }

            @Override
            public String shown() {
                return field instanceof String ? "'" + field + "'" : String.valueOf(field);
            }
        };
    }

    /** A parameter of the statement, counted from 0. */
    static Operand parameter(Column column, int number) {
        return new Operand() {
            @Override
            public Object value(DataContext run) {
                return column.compared(run.get("?" + number));
            }

            @Override
            public String shown() {
                return "?" + number;
            }
        };
    }

    /** For people. */
    String shown() {
        return String.format(text, operands.stream().map(Operand::shown).toArray());
    }
}
