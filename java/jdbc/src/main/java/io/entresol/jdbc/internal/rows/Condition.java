package io.entresol.jdbc.internal.rows;

import io.entresol.jdbc.internal.column.Column;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.calcite.DataContext;

/** A condition in Ickle. */
public sealed interface Condition {
    /** Columns that have a value where it holds. */
    Set<Column> present();

    /** What it compares with. */
    Stream<Operand> operands();

    /** The condition with the values of a run; empty if it never holds with them. */
    Optional<Condition> in(DataContext run);

    /** Its text, with the names that are given to its operands. */
    String text(Function<Operand, String> names);

    /**
     * One that holds for none whose value is null, whatever it compares with null.
     *
     * @param pattern its text, with {@code %s} for each operand
     * @param compared what it compares with
     * @param present columns that have a value where it holds
     */
    record Plain(String pattern, List<Operand> compared, Set<Column> present)
            implements Condition {
        @Override
        public Stream<Operand> operands() {
            return compared.stream();
        }

        @Override
        public Optional<Condition> in(DataContext run) {
            List<Operand> values = new ArrayList<>();
            for (Operand operand : compared) {
                Object value = operand.value(run);
                // Nothing compares with null.
                if (value == null) {
                    return Optional.empty();
                }
                values.add(constant(value));
            }
            return Optional.of(new Plain(pattern, values, present));
        }

        @Override
        public String text(Function<Operand, String> names) {
            return String.format(pattern, compared.stream().map(names).toArray());
        }
    }

    /** That all of some hold. */
    record All(List<Condition> parts) implements Condition {
        @Override
        public Set<Column> present() {
            Set<Column> present = new HashSet<>();
            parts.forEach(part -> present.addAll(part.present()));
            return present;
        }

        @Override
        public Stream<Operand> operands() {
            return parts.stream().flatMap(Condition::operands);
        }

        @Override
        public Optional<Condition> in(DataContext run) {
            List<Condition> possible = possible(parts, run);
            return possible.size() < parts.size() ? Optional.empty()
                    : Optional.of(new All(possible));
        }

        @Override
        public String text(Function<Operand, String> names) {
            return joined(parts, " and ", names);
        }
    }

    /** That one of some holds. */
    record Any(List<Condition> parts) implements Condition {
        @Override
        public Set<Column> present() {
            Set<Column> present = new HashSet<>(parts.get(0).present());
            parts.forEach(part -> present.retainAll(part.present()));
            return present;
        }

        @Override
        public Stream<Operand> operands() {
            return parts.stream().flatMap(Condition::operands);
        }

        @Override
        public Optional<Condition> in(DataContext run) {
            List<Condition> possible = possible(parts, run);
            return possible.isEmpty() ? Optional.empty() : Optional.of(new Any(possible));
        }

        @Override
        public String text(Function<Operand, String> names) {
            return joined(parts, " or ", names);
        }
    }

    /** A value of a condition that is known when a query is planned or when it is run. */
    interface Operand {
        /** The value as the index has it. */
        Object value(DataContext run);

        /** Whether it is the same in each run. */
        default boolean isConstant() {
            return false;
        }

        /** For people, in plans; what differs reads differently. */
        String shown();
    }

    /** That a column has a value. */
    static Condition present(Column column) {
        return new Plain(column.ickle() + " is not null", List.of(), Set.of(column));
    }

    /** That a column has one of some values; without any it never holds. */
    static Condition among(Column column, List<Operand> values) {
        String places = String.join(", ", Collections.nCopies(values.size(), "%s"));
        return values.isEmpty()
                ? new Plain(column.ickle() + " = %s", List.of(constant(null)), Set.of(column))
                : new Plain(column.ickle() + " in (" + places + ")", values, Set.of(column));
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
                return field instanceof String text ? "'" + text.replace("'", "''") + "'"
                        : String.valueOf(field);
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
    default boolean isConstant() {
        return operands().allMatch(Operand::isConstant);
    }

    /** For people. */
    default String shown() {
        return text(Operand::shown);
    }

    private static List<Condition> possible(List<Condition> parts, DataContext run) {
        return parts.stream().map(part -> part.in(run)).flatMap(Optional::stream).toList();
    }

    private static String joined(List<Condition> parts, String word,
            Function<Operand, String> names) {
        return parts.stream().map(part -> part.text(names))
                .collect(Collectors.joining(word, "(", ")"));
    }
}
