package io.entresol.cassandra;

import io.entresol.StoreStatistics;
import java.util.List;
import org.apache.cassandra.db.marshal.DoubleType;
import org.apache.cassandra.db.marshal.LongType;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.virtual.AbstractVirtualTable;
import org.apache.cassandra.db.virtual.SimpleDataSet;
import org.apache.cassandra.db.virtual.VirtualKeyspace;
import org.apache.cassandra.db.virtual.VirtualKeyspaceRegistry;
import org.apache.cassandra.dht.LocalPartitioner;
import org.apache.cassandra.schema.TableMetadata;

/** The keyspace {@code entresol}: the stores of this node, for who asks by CQL. */
final class VirtualTables {
    private static final String KEYSPACE = "entresol";

    private VirtualTables() {
    }

    static void register(List<NodeStore> stores) {
        VirtualKeyspaceRegistry.instance.register(
                new VirtualKeyspace(KEYSPACE, List.of(new Figures(stores), new Stored(stores))));
    }

    private static TableMetadata.Builder table(String name, String comment) {
        return TableMetadata.builder(KEYSPACE, name).comment(comment)
                .kind(TableMetadata.Kind.VIRTUAL)
                .partitioner(new LocalPartitioner(UTF8Type.instance))
                .addPartitionKeyColumn("store", UTF8Type.instance);
    }

    /** {@code entresol.stores}. */
    private static final class Figures extends AbstractVirtualTable {
        private final List<NodeStore> stores;

        Figures(List<NodeStore> stores) {
            super(table("stores", "figures of each store since it was opened")
                    .addClusteringColumn("figure", UTF8Type.instance)
                    .addRegularColumn("value", DoubleType.instance).build());
            this.stores = stores;
        }

        @Override
        public DataSet data() {
            SimpleDataSet rows = new SimpleDataSet(metadata());
            for (NodeStore node : stores) {
                StoreStatistics statistics = node.store.statistics();
                for (String name : statistics.names()) {
                    rows.row(node.devices, name).column("value", statistics.value(name));
                }
            }
            return rows;
        }
    }

    /** {@code entresol.tables}. */
    private static final class Stored extends AbstractVirtualTable {
        private final List<NodeStore> stores;

        Stored(List<NodeStore> stores) {
            super(table("tables", "tables whose rows are on flash")
                    .addClusteringColumn("keyspace_name", UTF8Type.instance)
                    .addClusteringColumn("table_name", UTF8Type.instance)
                    .addRegularColumn("generation", LongType.instance)
                    .addRegularColumn("sstables", LongType.instance).build());
            this.stores = stores;
        }

        @Override
        public DataSet data() {
            SimpleDataSet rows = new SimpleDataSet(metadata());
            for (NodeStore node : stores) {
                for (EntresolMemtable memtable : node.memtables()) {
                    TableMetadata table = memtable.metadata();
                    rows.row(node.devices, table.keyspace, table.name)
                            .column("generation", memtable.generation())
                            .column("sstables", memtable.sstables());
                }
            }
            return rows;
        }
    }
}
