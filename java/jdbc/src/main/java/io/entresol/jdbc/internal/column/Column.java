package io.entresol.jdbc.internal.column;

import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.infinispan.protostream.descriptors.FieldDescriptor;

/**
 * A column of a table: the key of the entries, or a field of their values.
 *
 * @param name its name in SQL; names of fields of nested messages have dots
 * @param path the fields that lead to it from the value; empty for the key
 * @param type the type of its values
 * @param index the abilities of the index for it
 */
public record Column(String name, List<FieldDescriptor> path, ColumnType type, Set<Index> index) {
    private static final Double NEGATIVE_ZERO = -0.0;
    private static final Float NEGATIVE_ZERO_REAL = -0.0f;

    /** Uses of an index. */
    public enum Index {
        /** Compared by value. */
        SEARCH,
        /** Sorted by. */
        SORT,
        /** Read from the index, without the entry. */
        PROJECT
    }

    public boolean isKey() {
        return path.isEmpty();
    }

    /** Whether an entry is found by it: keys that are messages are shown as JSON. */
    public boolean findsEntries() {
        return isKey() && type != ColumnType.DOCUMENT;
    }

    /** The last field of the path; null for the key. */
    FieldDescriptor field() {
        return path.isEmpty() ? null : path.get(path.size() - 1);
    }

    /** The column in Ickle, where the values' alias is {@code p}. */
    public String ickle() {
        return "p." + name;
    }

    public boolean can(Index use) {
        return index.contains(use);
    }

    public Object cell(Object value) {
        return isKey() ? value : withOneZero(type.cell(field(), value));
    }

    /** Both zeros of a floating-point column are one cell: in SQL they are equal. */
    private static Object withOneZero(Object cell) {
        if (NEGATIVE_ZERO.equals(cell)) {
            return 0.0;
        }
        return NEGATIVE_ZERO_REAL.equals(cell) ? (Object) 0.0f : cell;
    }

    /** Fields whose cells are equal to the cell of that one. */
    public Stream<Object> equalFields(Object compared) {
        return type.isApproximate() && ((Number) compared).doubleValue() == 0
                ? Stream.of(compared(0.0), compared(-0.0)) : Stream.of(compared);
    }

    /** The field that a cell is compared with. */
    public Object compared(Object cell) {
        return type.field(field(), cell, "column " + name);
    }

    /** The same, or null for a cell that the column cannot have. */
    public Object comparedOrNull(Object cell) {
        try {
            return compared(cell);
        } catch (IllegalArgumentException outside) {
            return null;
        }
    }

    /** The field that a cell is stored as. */
    Object stored(Object cell) {
        return type.storable(field(), cell, "column " + name);
    }
}
