package io.entresol.cassandra;

import io.entresol.StoreStatistics;
import io.entresol.cassandra.Catalog.Generation;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.schema.Schema;

/** What operators read and ask of a store. Thread-safe. */
final class StoreBean implements StoreMXBean {
    static final String NAME = "io.entresol.cassandra:type=Store";

    private final NodeStore node;
    private final String devices;

    StoreBean(NodeStore node, String devices) {
        this.node = node;
        this.devices = devices;
    }

    @Override
    public String getDevices() {
        return devices;
    }

    @Override
    public Map<String, Double> getFigures() {
        StoreStatistics statistics = node.store.statistics();
        Map<String, Double> figures = new TreeMap<>();
        statistics.names().forEach(name -> figures.put(name, statistics.value(name)));
        return figures;
    }

    @Override
    public List<String> getTables() {
        return node.memtables().stream().map(memtable -> memtable.metadata().toString()).sorted()
                .toList();
    }

    @Override
    public String getHeldBack() {
        return node.store.heldBack().orElse("");
    }

    @Override
    public List<String> getUnknown() {
        return node.catalog.generations().stream()
                .filter(one -> isUnknown(one) && !node.isEmpty(one)).map(Generation::ordered).toList();
    }

    @Override
    public void clear(String unknown) {
        Generation found = node.catalog.generations().stream()
                .filter(one -> isUnknown(one) && one.ordered().equals(unknown)).findFirst()
                .orElseThrow(() -> new IllegalArgumentException(unknown
                        + " is not among the rows of unknown tables; expected one of "
                        + getUnknown()));
        node.drop(found);
    }

    @Override
    public long purge(String keyspace, String table) {
        EntresolMemtable memtable = memtable(keyspace, table);
        return new Patrol(memtable, memtable.purge(), bytes -> { }).walk();
    }

    @Override
    public long cleanup(String keyspace, String table) {
        return new Cleanup(memtable(keyspace, table)).run();
    }

    @Override
    public int absorb(String keyspace, String table) {
        ColumnFamilyStore cfs = Keyspace.open(keyspace).getColumnFamilyStore(table);
        int moved = new Absorb(memtable(keyspace, table), cfs).run();
        for (ColumnFamilyStore index : cfs.indexManager.getAllIndexColumnFamilyStores()) {
            if (index.getTracker().getView().getCurrentMemtable() instanceof EntresolMemtable own) {
                moved += new Absorb(own, index).run();
            }
        }
        return moved;
    }

    private static boolean isUnknown(Generation generation) {
        return Schema.instance.getTableMetadata(generation.table().id()) == null;
    }

    private static EntresolMemtable memtable(String keyspace, String table) {
        Memtable memtable = Keyspace.open(keyspace).getColumnFamilyStore(table).getTracker()
                .getView().getCurrentMemtable();
        if (memtable instanceof EntresolMemtable own) {
            return own;
        }
        throw new IllegalArgumentException(keyspace + "." + table + " is not on flash: its memtable"
                + " is a " + memtable.getClass().getSimpleName()
                + "; expected a table WITH memtable = a configuration of this plug-in");
    }
}
