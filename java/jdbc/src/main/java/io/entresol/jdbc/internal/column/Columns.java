package io.entresol.jdbc.internal.column;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.infinispan.protostream.descriptors.Descriptor;
import org.infinispan.protostream.descriptors.FieldDescriptor;
import org.infinispan.protostream.descriptors.JavaType;
import org.infinispan.server.core.query.impl.indexing.FieldMapping;
import org.infinispan.server.core.query.impl.indexing.IndexingMetadata;

/** The columns that the schema of a value gives. */
public final class Columns {
    static final String KEY = "_key";
    /** Messages inside of messages have columns of their own down to here. */
    private static final int DEPTH_MAX = 4;
    /** Words of Ickle that cannot be names of fields there. */
    private static final Set<String> ICKLE = Set.of("all", "and", "any", "as", "asc", "avg",
            "between", "by", "class", "count", "cross", "delete", "desc", "distinct", "elements",
            "escape", "except", "exists", "false", "fetch", "from", "full", "group", "having",
            "in", "index", "indices", "inner", "intersect", "into", "is", "join", "key", "left",
            "like", "max", "member", "min", "not", "null", "object", "of", "on", "or", "order",
            "outer", "properties", "right", "select", "set", "some", "sum", "to", "true",
            "union", "update", "value", "version", "versioned", "where", "with", "within");

    private final List<Column> columns = new ArrayList<>();
    private final Predicate<String> indexes;

    private Columns(Predicate<String> indexes) {
        this.indexes = indexes;
    }

    /** The type of rows that have these columns. */
    public static RelDataType rowType(List<Column> columns, RelDataTypeFactory factory) {
        RelDataTypeFactory.Builder row = factory.builder();
        for (Column column : columns) {
            RelDataType sql = column.type().sqlType(factory);
            row.add(column.name(), factory.createTypeWithNullability(sql, !column.isKey()));
        }
        return row.build();
    }

    /**
     * The key, then the fields in the order of the schema.
     *
     * @param indexes whether an index knows the field of that name: one that a schema has since, it
     *     does not
     */
    public static List<Column> of(ColumnType key, Descriptor value, Predicate<String> indexes) {
        Columns made = new Columns(indexes);
        Set<String> taken = new HashSet<>();
        value.getFields().forEach(field -> taken.add(field.getName()));
        String name = KEY;
        while (taken.contains(name)) {
            name = "_" + name;
        }
        made.columns.add(new Column(name, List.of(), key, EnumSet.noneOf(Column.Index.class)));
        made.add(value, List.of(), "", true);
        return List.copyOf(made.columns);
    }

    private void add(Descriptor type, List<FieldDescriptor> path, String prefix, boolean indexed) {
        IndexingMetadata metadata =
                type.getProcessedAnnotation(IndexingMetadata.INDEXED_ANNOTATION);
        for (FieldDescriptor field : type.getFields()) {
            List<FieldDescriptor> here = new ArrayList<>(path);
            here.add(field);
            String name = prefix + field.getName();
            FieldMapping mapping = indexed && metadata != null
                    ? metadata.getFieldMapping(field.getName()) : null;
            boolean known = mapping == null || indexes.test(name);
            if (isInner(field) && here.size() < DEPTH_MAX && !contains(path, field)) {
                add(field.getMessageType(), here, name + ".", mapping != null);
            } else {
                ColumnType column = ColumnType.of(field);
                columns.add(new Column(name, List.copyOf(here), column, uses(column, known ? mapping : null)));
            }
        }
    }

    private static boolean isInner(FieldDescriptor field) {
        return field.getJavaType() == JavaType.MESSAGE && !field.isRepeated() && !field.isMap();
    }

    private static boolean contains(List<FieldDescriptor> path, FieldDescriptor field) {
        return path.stream().anyMatch(each -> each.getMessageType() == field.getMessageType());
    }

    /** What an index does exactly as SQL would; analysed and normalised texts are not that. */
    private static Set<Column.Index> uses(ColumnType type, FieldMapping mapping) {
        Set<Column.Index> uses = EnumSet.noneOf(Column.Index.class);
        boolean usable = mapping != null && mapping.indexNullAs() == null
                && type != ColumnType.DOCUMENT && type != ColumnType.VARBINARY
                && mapping.name().equals(mapping.getFieldDescriptor().getName())
                && !ICKLE.contains(mapping.name().toLowerCase(Locale.ROOT));
        if (!usable) {
            return uses;
        }
        boolean plain = !mapping.analyzed() && !mapping.normalized();
        if (mapping.searchable() && plain) {
            uses.add(Column.Index.SEARCH);
        }
        if (mapping.sortable() && plain && type.isOrdered()) {
            uses.add(Column.Index.SORT);
        }
        if (mapping.projectable()) {
            uses.add(Column.Index.PROJECT);
        }
        return uses;
    }
}
