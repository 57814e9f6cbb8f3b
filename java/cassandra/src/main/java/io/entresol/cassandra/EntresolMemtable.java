package io.entresol.cassandra;

import io.entresol.OrderedTable;
import io.entresol.StoreException;
import io.entresol.TableBatch;
import io.entresol.cassandra.Catalog.Generation;
import io.entresol.cassandra.PartitionReader.Source;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.apache.cassandra.concurrent.ScheduledExecutors;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.ColumnFamilyStore.FlushReason;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.commitlog.CommitLog;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.memtable.AbstractMemtableWithCommitlog;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.index.transactions.UpdateTransaction;
import org.apache.cassandra.io.sstable.SSTableReadsListener;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.utils.Clock;
import org.apache.cassandra.utils.concurrent.OpOrder;

/**
 * The rows of a Cassandra table on flash, in an ordered table: a memtable that is never flushed. It
 * is what {@code class_name} of a memtable configuration names. Thread-safe, as Cassandra asks of
 * memtables.
 */
public final class EntresolMemtable extends AbstractMemtableWithCommitlog {
    private final EntresolFactory factory;
    private final NodeStore node;
    private final OrderedTable table;
    private final Layouts layouts;
    private final PartitionWriter writer;
    private final ColumnFamilyStore cfs;
    private final Temporaries temporaries;
    private final LongAdder bytes = new LongAdder();
    private volatile Generation generation;
    private volatile long partitions;
    /** Its rows go, and nobody flushes them. */
    private volatile boolean leaving;
    private volatile boolean isSwitchedOut;

    EntresolMemtable(EntresolFactory factory, AtomicReference<CommitLogPosition> lowerBound,
            TableMetadataRef metadata, Owner owner) {
        super(metadata, lowerBound);
        this.factory = factory;
        node = NodeStore.of(factory.parameters());
        TableName name = TableName.of(metadata.get());
        generation = node.generation(name);
        table = node.table(generation);
        layouts = new Layouts(node.catalog, name);
        writer = new PartitionWriter(node.store, table);
        cfs = owner instanceof ColumnFamilyStore one ? one : null;
        table.merge(new RowFold(layouts, this::metadata, this::purge));
        layouts.of(metadata.get());
        temporaries = node.temporaries(name, cfs);
        if (node.isFirst(name)) {
            temporaries.removeAll();
            generation = node.takeOver(generation);
        }
        minTimestamp.set(generation.leastTimestamp());
        minLocalDeletionTime.set(0);
        node.watch(this);
        renewIndexes();
    }

    /** Where a table comes to flash, its indexes come with the next start. */
    private void renewIndexes() {
        if (cfs != null && cfs.indexManager != null && !cfs.isIndex()
                && !(cfs.getTracker().getView().getCurrentMemtable() instanceof EntresolMemtable)) {
            // Not in this thread: it holds the lock of the switch.
            ScheduledExecutors.nonPeriodicTasks.execute(() -> IndexBuild.renewAtStart(cfs));
        }
    }

    /**
     * What Cassandra calls for a configuration; it takes what it knows out of the map. Where a
     * statement names the configuration first, a store that cannot be opened refuses the statement.
     * At a start it is opened by the first table: Cassandra would answer a failure here with an
     * empty table of its own.
     */
    public static Factory factory(Map<String, String> parameters) {
        EntresolFactory factory = new EntresolFactory(Parameters.of(parameters));
        if (StorageService.instance.isInitialized()) {
            try {
                NodeStore.of(factory.parameters());
            } catch (StoreException refused) {
                throw new ConfigurationException(refused.getMessage(), refused);
            }
        }
        return factory;
    }

    @Override
    public long put(PartitionUpdate update, UpdateTransaction indexer, OpOrder.Group group) {
        // Entries of indexes first: those that name no row are dropped by readers.
        index(update, indexer);
        TableMetadata metadata = metadata();
        Failures.writing(metadata, () -> {
            if (PartitionWriter.hasHead(update) && !generation.hasHeads()) {
                recordHeads();
            }
            RowCodec codec = new RowCodec(layouts.of(metadata));
            try (TableBatch batch = writer.batch(update, codec)) {
                if (update.stats().minTimestamp < minTimestamp.get()) {
                    writeLower(batch, update.stats().minTimestamp);
                } else {
                    batch.write();
                }
                // Not before it is written: who comes meanwhile records it, too.
                updateMin(minTimestamp, update.stats().minTimestamp);
                bytes.add(batch.bytes());
            }
        });
        currentOperations.addAndGet(update.operationCount());
        return Long.MAX_VALUE;
    }

    private static void index(PartitionUpdate update, UpdateTransaction indexer) {
        if (indexer == UpdateTransaction.NO_OP) {
            return;
        }
        indexer.start();
        if (!update.partitionLevelDeletion().isLive()) {
            indexer.onPartitionDeletion(update.partitionLevelDeletion());
        }
        Iterator<RangeTombstone> ranges = update.deletionInfo().rangeIterator(false);
        ranges.forEachRemaining(indexer::onRangeTombstone);
        if (!update.staticRow().isEmpty()) {
            indexer.onInserted(update.staticRow());
        }
        for (Row row : update) {
            indexer.onInserted(row);
        }
        indexer.commit();
    }

    /** Records a timestamp that is lower than all so far, together with the update that has it. */
    private synchronized void writeLower(TableBatch batch, long timestamp) {
        if (timestamp < generation.leastTimestamp()) {
            generation = generation.withLeast(timestamp);
        }
        node.catalog.add(batch, generation);
        batch.write();
    }

    /** Records that there are heads from now on, before the first one: readers look for none else. */
    private synchronized void recordHeads() {
        if (!generation.hasHeads()) {
            Generation withHeads = generation.withHeads();
            node.catalog.put(withHeads);
            generation = withHeads;
        }
    }

    /** Records that the rows stay until SSTables have them: the new generation has none of them. */
    private void keepUntilFlushed() {
        for (ColumnFamilyStore each : cfs.concatWithIndexes()) {
            if (each.getTracker().getView().getCurrentMemtable() instanceof EntresolMemtable own) {
                own.recordFlush();
            }
        }
    }

    private synchronized void recordFlush() {
        generation = generation.flushing(Clock.Global.currentTimeMillis());
        node.catalog.put(generation);
    }

    @Override
    public UnfilteredRowIterator rowIterator(DecoratedKey key, Slices slices, ColumnFilter columns,
            boolean reversed, SSTableReadsListener listener) {
        TableMetadata metadata = metadata();
        return Failures.reading(metadata, () -> new PartitionReader(source(metadata, columns), key,
                RowKey.partition(key)).rows(slices, reversed));
    }

    @Override
    public UnfilteredRowIterator rowIterator(DecoratedKey key) {
        return rowIterator(key, Slices.ALL, ColumnFilter.all(metadata()), false,
                SSTableReadsListener.NOOP_LISTENER);
    }

    @Override
    public UnfilteredPartitionIterator partitionIterator(ColumnFilter columns, DataRange range,
            SSTableReadsListener listener) {
        return Failures.reading(metadata(), () -> new TokenRange(this, columns, range));
    }

    /** What reads and writes of all columns need. */
    Source source(TableMetadata metadata) {
        return source(metadata, ColumnFilter.all(metadata));
    }

    RowFold.Folding folding(TableMetadata metadata) {
        return new RowFold.Folding(layouts, metadata);
    }

    /** The number of the generation. */
    long generation() {
        return generation.number();
    }

    /** What a start would know of its rows. */
    Generation recorded() {
        return node.catalog.newest(TableName.of(metadata())).orElseThrow();
    }

    /** Whether partitions may have heads. */
    boolean hasHeads() {
        return generation.hasHeads();
    }

    /** How many SSTables the table has beside its rows on flash. */
    long sstables() {
        return cfs == null ? 0 : cfs.getLiveSSTables().size();
    }

    void sync() {
        node.store.sync();
    }

    Temporaries temporaries() {
        return temporaries;
    }

    OrderedTable table() {
        return table;
    }

    /** What may be purged now. */
    Purge purge() {
        return Purge.of(cfs, metadata());
    }

    TableBatch batch() {
        return node.store.batch();
    }

    /** What a query reads from. */
    Source source(TableMetadata metadata, ColumnFilter columns) {
        return Source.of(this, layouts, metadata, columns);
    }

    @Override
    public FlushablePartitionSet<Partition> getFlushSet(PartitionPosition from, PartitionPosition to) {
        return Failures.reading(metadata(), () -> new FlushSet(this, from, to));
    }

    @Override
    public boolean shouldSwitch(FlushReason reason) {
        return switch (reason) {
            // Without a snapshot to be taken, nobody needs the rows.
            case TRUNCATE -> {
                leaving = !cfs.isAutoSnapshotEnabled();
                if (!leaving) {
                    keepUntilFlushed();
                }
                yield true;
            }
            case DROP -> {
                leaving = true;
                yield true;
            }
            case INDEX_REMOVED -> {
                leaving = true;
                yield true;
            }
            case SCHEMA_CHANGE -> {
                boolean goes = !factory.equals(metadata().params.memtable.factory());
                if (goes) {
                    keepUntilFlushed();
                    IndexBuild.renewAtStart(cfs);
                    // The next start may not open the store.
                    temporaries.removeUnused();
                }
                yield goes;
            }
            case INDEX_BUILD_STARTED -> {
                IndexBuild.run(this, cfs);
                yield false;
            }
            // Builders of views read SSTables only.
            case VIEW_BUILD_STARTED -> {
                keepUntilFlushed();
                yield true;
            }
            // Who sent rows, or had them in a log to replay, forgets them then.
            case STREAMS_RECEIVED, STARTUP, DRAIN -> {
                Failures.writing(metadata(), node.store::sync);
                temporaries.removeUnused();
                yield false;
            }
            default -> false;
        };
    }

    @Override
    public boolean isClean() {
        if (leaving) {
            return true;
        }
        return Failures.reading(metadata(), () -> node.isEmpty(generation));
    }

    /**
     * Ends the memtable of a table that was dropped, and that nobody discards: the drop made it in
     * place of the one with the rows. Whether it was one.
     */
    boolean endIfOrphaned() {
        if (cfs == null || cfs.isValid()) {
            return false;
        }
        node.forget(this);
        node.drop(generation);
        return true;
    }

    @Override
    public void discard() {
        super.discard();
        node.forget(this);
        Failures.writing(metadata(), () -> node.drop(generation));
    }

    /** The position of now while the memtable is live: whoever streams from it asks. */
    @Override
    public LastCommitLogPosition getFinalCommitLogUpperBound() {
        CommitLogPosition now = CommitLog.instance.getCurrentPosition();
        return isSwitchedOut ? super.getFinalCommitLogUpperBound() : new LastCommitLogPosition(now);
    }

    @Override
    public void switchOut(OpOrder.Barrier barrier, AtomicReference<CommitLogPosition> upperBound) {
        super.switchOut(barrier, upperBound);
        isSwitchedOut = true;
    }

    @Override
    public void metadataUpdated() {
        layouts.of(metadata());
    }

    @Override
    public void localRangesUpdated() {
        // Rows are in the order of the ring, whoever owns which part.
    }

    @Override
    public void performSnapshot(String name) {
        Snapshots.write(getFlushSet(null, null), cfs, name);
    }

    /** As of the patrol's last walk; 0 before the first one of this process. */
    @Override
    public long partitionCount() {
        return partitions;
    }

    /** Says how many partitions a walk over the table has met. */
    void notePartitions(long count) {
        partitions = count;
    }

    /** Since the start; not 0 of a table with rows, which Cassandra would take for an empty one. */
    @Override
    public long operationCount() {
        long since = super.operationCount();
        return since > 0 || isClean() ? since : 1;
    }

    /** Bytes of updates since the start: what is on flash is in the store's figures. */
    @Override
    public long getLiveDataSize() {
        return bytes.sum();
    }

    @Override
    public void addMemoryUsageTo(MemoryUsage usage) {
        // The store's memory has a cap of its own.
    }

    @Override
    public void markExtraOnHeapUsed(long additional, OpOrder.Group group) {
        // Nothing waits for memory of a pool here.
    }

    @Override
    public void markExtraOffHeapUsed(long additional, OpOrder.Group group) {
        // The same.
    }
}
