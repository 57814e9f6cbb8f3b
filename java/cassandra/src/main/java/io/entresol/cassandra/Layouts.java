package io.entresol.cassandra;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.marshal.BytesType;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableMetadata;

/**
 * The columns that values of a table were written with. A value names the layout that it has, so
 * that it is still read after columns were added or dropped. Thread-safe.
 */
final class Layouts {
    /** A column as a layout knows it. */
    record Column(ByteBuffer name, boolean isStatic) {
    }

    /** A layout as one state of the schema sees it. */
    record Layout(int number, RegularAndStaticColumns columns, SerializationHeader header,
            SerializationHeader bare) {
        private static Layout of(int number, TableMetadata metadata,
                RegularAndStaticColumns columns) {
            // Rows that are folded have no clustering: it is in their keys.
            TableMetadata bare = TableMetadata.builder(metadata.keyspace, metadata.name, metadata.id)
                    .partitioner(metadata.partitioner)
                    .addPartitionKeyColumn("key", BytesType.instance).build();
            EncodingStats stats = EncodingStats.NO_STATS;
            return new Layout(number, columns,
                    new SerializationHeader(false, metadata, columns, stats),
                    new SerializationHeader(false, bare, columns, stats));
        }
    }

    /** All layouts as one state of the schema sees them; the last one has all its columns. */
    record Known(TableMetadata metadata, List<Layout> layouts) {
        Layout current() {
            return layouts.get(layouts.size() - 1);
        }

        Layout numbered(int number) {
            if (number < 0 || number >= layouts.size()) {
                throw new DamagedRow("it names layout " + number + " of " + metadata
                        + "; expected one of " + layouts.size());
            }
            return layouts.get(number);
        }
    }

    private final Catalog catalog;
    private final TableName table;
    private final List<List<Column>> stored;
    private volatile Known known;

    Layouts(Catalog catalog, TableName table) {
        this.catalog = catalog;
        this.table = table;
        stored = catalog.layouts(table);
    }

    /** The layouts for a state of the schema, whose own one is recorded before anybody uses it. */
    Known of(TableMetadata metadata) {
        Known last = known;
        return last != null && last.metadata == metadata ? last : renew(metadata);
    }

    private synchronized Known renew(TableMetadata metadata) {
        List<Column> columns = columns(metadata.regularAndStaticColumns());
        if (stored.isEmpty() || !stored.get(stored.size() - 1).equals(columns)) {
            catalog.addLayout(table, stored.size(), columns);
            stored.add(columns);
        }
        List<Layout> layouts = new ArrayList<>();
        for (List<Column> layout : stored) {
            layouts.add(Layout.of(layouts.size(), metadata, resolved(layout, metadata)));
        }
        known = new Known(metadata, layouts);
        return known;
    }

    private static List<Column> columns(RegularAndStaticColumns all) {
        List<Column> columns = new ArrayList<>();
        all.forEach(column -> columns.add(new Column(column.name.bytes, column.isStatic())));
        return columns;
    }

    private static RegularAndStaticColumns resolved(List<Column> layout, TableMetadata metadata) {
        RegularAndStaticColumns.Builder builder = RegularAndStaticColumns.builder();
        for (Column column : layout) {
            ColumnMetadata now = metadata.getColumn(column.name);
            if (now == null || now.isStatic() != column.isStatic) {
                now = metadata.getDroppedColumn(column.name, column.isStatic);
            }
            if (now == null) {
                throw new IllegalStateException(metadata + " has values with the column "
                        + UTF8Type.instance.getString(column.name)
                        + ", which the schema does not know; expected it among the columns or the"
                        + " dropped ones");
            }
            builder.add(now);
        }
        return builder.build();
    }
}
