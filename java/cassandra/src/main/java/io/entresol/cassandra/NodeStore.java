package io.entresol.cassandra;

import io.entresol.Durability;
import io.entresol.OrderedTable;
import io.entresol.Store;
import io.entresol.StoreOptions;
import io.entresol.TableCursor;
import io.entresol.TableRange;
import io.entresol.cassandra.Catalog.Generation;
import io.entresol.cassandra.Catalog.State;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.cassandra.config.Config.CommitLogSync;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.index.internal.CassandraIndex;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.utils.MBeanWrapper;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The store of one or several memtable configurations of this node. It is opened when the first
 * table needs it, and closed when the process ends. Thread-safe.
 */
final class NodeStore {
    private static final Logger LOGGER = LoggerFactory.getLogger(NodeStore.class);
    private static final Map<String, NodeStore> OPEN = new ConcurrentHashMap<>();
    private static final List<NodeStore> STORES = new CopyOnWriteArrayList<>();
    private static final long LARGE_STORE = 8L << 30;
    private static final int LARGE_SEGMENT = 8 << 20;

    final Store store;
    final String devices;
    final Catalog catalog;
    /** Tables whose stored generation has its memtable in this process. */
    private final Set<TableName> opened = new HashSet<>();
    private final Set<TableName> firsts = new HashSet<>();
    private final Map<TableName, Temporaries> temporaries = new ConcurrentHashMap<>();
    private final Patrols patrols;

    private NodeStore(Parameters parameters) {
        devices = parameters.devices();
        store = Store.open(options(parameters));
        catalog = new Catalog(store);
        giveFolds();
        removeLeftovers();
        closeAtShutdown();
        patrols = new Patrols(parameters.patrol(), () -> {
            temporaries.values().forEach(Temporaries::removeUnused);
            if (parameters.writesLog()) {
                markCommitLog();
            }
        });
        LOGGER.info("Opened the store on {}", parameters.devices());
    }

    /** The store that a configuration names; the same for all that name it. */
    static NodeStore of(Parameters parameters) {
        return OPEN.computeIfAbsent(parameters.devices(), devices -> {
            NodeStore opened = new NodeStore(parameters);
            String number = OPEN.isEmpty() ? "" : ",number=" + OPEN.size();
            MBeanWrapper.instance.registerMBean(new StoreBean(opened, devices),
                    StoreBean.NAME + number);
            STORES.add(opened);
            VirtualTables.register(STORES);
            return opened;
        });
    }

    /**
     * The generation of a new memtable: the stored one for the first of a table in this process, else
     * a new one.
     */
    synchronized Generation generation(TableName name) {
        Generation newest = catalog.newest(name).orElse(null);
        boolean isFirst = opened.add(name);
        if (isFirst) {
            firsts.add(name);
        }
        if (newest != null && newest.state() != State.DROPPING && isFirst) {
            return newest.state() == State.LIVE ? newest : live(newest);
        }
        Generation fresh = Generation.first(name, newest == null ? 1 : newest.number() + 1);
        catalog.put(fresh);
        return fresh;
    }

    /** Whether a table has had one memtable in this process, not more. */
    synchronized boolean isFirst(TableName name) {
        return firsts.remove(name);
    }

    /** A flush that was asked for was not even begun. */
    private Generation live(Generation generation) {
        Generation live = generation.in(State.LIVE);
        catalog.put(live);
        return live;
    }

    /** The temporary SSTables of a table. */
    Temporaries temporaries(TableName name, ColumnFamilyStore cfs) {
        return temporaries.computeIfAbsent(name, one -> new Temporaries(catalog, one, cfs));
    }

    /**
     * Moves the rows of a table's older generations, whose flush a crash has ended, to the one that
     * counts, and says what that is then. Part by part, so that readers fold them as they would have.
     */
    Generation takeOver(Generation newest) {
        Generation now = newest;
        for (Generation older : catalog.generations(newest.table())) {
            if (older.number() >= newest.number()) {
                continue;
            }
            LOGGER.info("Taking {} over, whose flush was cut short", older.ordered());
            now = now.withLeast(Math.min(now.leastTimestamp(), older.leastTimestamp()))
                    .withHeads();
            catalog.put(now);
            OrderedTable to = table(newest);
            try (Batches batches = new Batches(store.batch());
                    TableCursor rows = table(older).scanUnfolded(TableRange.ALL)) {
                while (rows.next()) {
                    if (rows.hasBase()) {
                        Parts.add(batches.next(), to, rows.key(), rows.baseSlice());
                    }
                    for (Parts parts = new Parts(rows); parts.hasNext();) {
                        Parts.add(batches.next(), to, rows.key(), parts.next());
                    }
                }
                batches.write();
            }
            store.sync();
            drop(older);
        }
        return now;
    }

    /** Lets the commit log go of what the store has. */
    private void markCommitLog() {
        CommitLogMarks.advance(store, patrols.memtables());
    }

    /** The memtables whose rows are in the store. */
    Set<EntresolMemtable> memtables() {
        return patrols.memtables();
    }

    /** Has the patrol walk over a memtable, in turn with the others. */
    void watch(EntresolMemtable memtable) {
        patrols.add(memtable);
    }

    /** Ends the walks over a memtable. */
    void forget(EntresolMemtable memtable) {
        patrols.remove(memtable);
    }

    OrderedTable table(Generation generation) {
        return store.table(generation.ordered());
    }

    /** Whether a generation has no row. */
    boolean isEmpty(Generation generation) {
        TableRange one = TableRange.ALL.limit(1).pageBytes(1 << 10);
        try (TableCursor rows = table(generation).scanUnfolded(one)) {
            return !rows.next();
        }
    }

    /** Removes the rows of a generation. A crash in between is made good by the next start. */
    void drop(Generation generation) {
        catalog.put(generation.in(State.DROPPING));
        table(generation).drop();
        catalog.remove(generation);
    }

    /**
     * Has the store closed after the drain, which still writes. A node that joins a ring holds the
     * lock that this takes while it waits for the schema, which may be what opens the store here.
     */
    private void closeAtShutdown() {
        Thread thread = new Thread(() -> StorageService.instance.addPostShutdownHook(this::close),
                "entresol shutdown hook");
        thread.setDaemon(true);
        thread.start();
    }

    private void close() {
        patrols.close();
        try {
            store.close();
        } catch (RuntimeException failed) {
            LOGGER.error("The store was not closed; the next start recovers it", failed);
        }
    }

    /**
     * Has the store fold what waited for merges at a kill, before anything is written: where changes
     * of tables that have no memtable yet fill the memory for them, no write would find room. Each
     * memtable puts its own function, which purges too, in the place of this one.
     */
    private void giveFolds() {
        for (Generation one : catalog.generations()) {
            TableMetadata metadata = metadata(one.table());
            if (metadata != null) {
                Layouts layouts = new Layouts(catalog, one.table());
                table(one).merge(new RowFold(layouts, () -> metadata, () -> Purge.NOTHING));
                layouts.of(metadata);
            }
        }
    }

    /** What the schema says of a table, or of that of an index; null if it knows neither. */
    private static TableMetadata metadata(TableName name) {
        TableMetadata metadata = Schema.instance.getTableMetadata(name.id());
        if (metadata == null || name.index().isEmpty()) {
            return metadata;
        }
        return metadata.indexes.get(name.index()).filter(index -> !index.isCustom())
                .map(index -> CassandraIndex.indexCfsMetadata(metadata, index)).orElse(null);
    }

    private void removeLeftovers() {
        Set<TableName> newer = new HashSet<>();
        var all = catalog.generations();
        for (int number = all.size() - 1; number >= 0; number--) {
            Generation one = all.get(number);
            boolean isNewest = newer.add(one.table());
            if (one.state() == State.DROPPING || !isNewest && !isCutShort(one)) {
                LOGGER.info("Removing {}, which was truncated or dropped before the last stop",
                        one.ordered());
                drop(one);
            } else if (Schema.instance.getTableMetadata(one.table().id()) != null) {
                warnIfElsewhere(one);
            } else if (isEmpty(one)) {
                // What a dropped table left.
                drop(one);
            } else {
                LOGGER.warn("{} is of a table that the schema does not know; it is kept",
                        one.ordered());
            }
        }
    }

    /** Whether an older generation still has rows that no SSTable has: no truncation came after. */
    private static boolean isCutShort(Generation one) {
        return one.state() == State.FLUSHING
                && SystemKeyspace.getTruncatedAt(one.table().id()) < one.since();
    }

    private static void warnIfElsewhere(Generation one) {
        TableMetadata metadata = Schema.instance.getTableMetadata(one.table().id());
        if (!(metadata.params.memtable.factory() instanceof EntresolFactory)) {
            LOGGER.warn("{} has rows of {}, whose memtable is another one by now: a move to SSTables was"
                    + " cut short. Have it back by ALTER TABLE … WITH memtable, then move it again",
                    one.ordered(), metadata);
        }
    }

    static StoreOptions options(Parameters parameters) {
        StoreOptions options = StoreOptions.onDevices(parameters.devices())
                .capacity(parameters.capacity()).memory(parameters.memory())
                .compression(parameters.compression()).orderedTables(parameters.journal())
                .waitingChanges(parameters.waiting()).durability(durability(parameters));
        if (parameters.capacity() >= LARGE_STORE) {
            // An update has up to half of a segment.
            options = options.segment(LARGE_SEGMENT);
        }
        byte[] key = parameters.encryptionKey();
        return key == null ? options : options.encryptionKey(key);
    }

    /** What Cassandra promises of a commit log that is configured so. */
    private static Durability durability(Parameters parameters) {
        if (parameters.writesLog()) {
            // The commit log keeps the promise.
            return Durability.FLUSHED;
        }
        return DatabaseDescriptor.getCommitLogSync() == CommitLogSync.periodic
                ? Durability.periodic(DatabaseDescriptor.getCommitLogSyncPeriod())
                : Durability.SYNCED;
    }
}
