package io.entresol.jdbc;

import java.util.Collections;
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

        /** Whether it is the same in each run. */
        default boolean isConstant() {
            return false;
        }

        /** For people, in plans. */
        String shown();
    }

    /** That a column has a value. */
    static Condition present(Column column) {
        return new Condition(column.ickle() + " is not null", List.of(), Set.of(column));
    }

    /** That a column has one of some values; without any it never holds. */
    static Condition among(Column column, List<Operand> values) {
        String places = String.join(", ", Collections.nCopies(values.size(), "%s"));
        return values.isEmpty()
                ? new Condition(column.ickle() + " = %s", List.of(constant(null)), Set.of(column))
                : new Condition(column.ickle() + " in (" + places + ")", values, Set.of(column));
    }

    static Operand constant(Object field) {
        return new Operand() {
            @Override
            public Object value(DataContext run) {
                return field;
            }

            @Override
            public boolean isConstant() {
                return true;
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

    /** Whether it asks the same in each run. */
    boolean isConstant() {
        return operands.stream().allMatch(Operand::isConstant);
    }

    /** For people. */
    String shown() {
        return String.format(text, operands.stream().map(Operand::shown).toArray());
    }
}
