package io.entresol.compare.cassandra;

import java.lang.instrument.Instrumentation;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import javax.management.JMException;
import javax.management.ObjectName;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.ColumnFamilyStore.FlushReason;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.ReadExecutionController;
import org.apache.cassandra.db.SinglePartitionReadCommand;
import org.apache.cassandra.db.compaction.CompactionManager;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.FBUtilities;

/** The part of the comparison that is in each node's process, as an agent of its Java. */
public final class InNode implements InNodeMXBean {
    /** SSTables as of the last flush. */
    private Set<SSTableReader> known = Set.of();
    private boolean compactsBySelf = true;

    private InNode() {
    }

    /** Comes before the node's own start, which then has its classes. */
    public static void premain(String arguments, Instrumentation instrumentation)
            throws JMException {
        ManagementFactory.getPlatformMBeanServer()
                .registerMBean(new InNode(), new ObjectName(NAME));
    }

    @Override
    public long read(int[] shape, int threads, long milliseconds, long seed) {
        Rows rows = new Rows(shape[0], shape[1], shape[2], shape[3]);
        ExecutorService readers = Executors.newFixedThreadPool(threads);
        try {
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
            List<Future<Long>> counts = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                SplittableRandom random = new SplittableRandom(seed + thread);
                counts.add(readers.submit(() -> readUntil(rows, random, end)));
            }
            long all = 0;
            for (Future<Long> count : counts) {
                all += count.get();
            }
            return all;
        } catch (InterruptedException | java.util.concurrent.ExecutionException failed) {
            throw new IllegalStateException(failed);
        } finally {
            readers.shutdown();
        }
    }

    private static long readUntil(Rows rows, SplittableRandom random, long end) {
        ColumnFamilyStore table = table();
        long count = 0;
        while (System.nanoTime() < end) {
            int row = random.nextInt(rows.count());
            read(table, rows, row);
            count++;
        }
        return count;
    }

    private static void read(ColumnFamilyStore table, Rows rows, int number) {
        TableMetadata metadata = table.metadata();
        Clustering<?> clustering = rows.clustered() == 0 ? Clustering.EMPTY
                : Clustering.make(Int32Type.instance.decompose(rows.clustering(number)));
        SinglePartitionReadCommand read = SinglePartitionReadCommand.create(metadata,
                FBUtilities.nowInSeconds(),
                table.decorateKey(UTF8Type.instance.decompose(rows.key(number))), clustering);
        int found = 0;
        try (ReadExecutionController controller = read.executionController();
                UnfilteredPartitionIterator partitions = read.executeLocally(controller)) {
            while (partitions.hasNext()) {
                try (UnfilteredRowIterator partition = partitions.next()) {
                    while (partition.hasNext()) {
                        check(rows, number, metadata, (Row) partition.next());
                        found++;
                    }
                }
            }
        }
        if (found != 1) {
            throw new IllegalStateException(
                    "row " + number + " was found " + found + " times; expected once");
        }
    }

    private static void check(Rows rows, int number, TableMetadata metadata, Row row) {
        int column = 0;
        for (ColumnMetadata each : metadata.regularColumns()) {
            rows.check(number, column++, row.getCell(each).buffer());
        }
    }

    @Override
    public synchronized void flush() {
        table().forceBlockingFlush(FlushReason.USER_FORCED);
        Set<SSTableReader> fresh = new HashSet<>(table().getLiveSSTables());
        fresh.removeAll(known);
        if (fresh.size() > 1 && !compactsBySelf) {
            CompactionManager.instance.forceUserDefinedCompaction(fresh.stream()
                    .map(SSTableReader::getFilename).collect(Collectors.joining(",")));
        }
        known = Set.copyOf(table().getLiveSSTables());
    }

    @Override
    public synchronized void compact() {
        table().forceMajorCompaction();
        known = Set.copyOf(table().getLiveSSTables());
    }

    @Override
    public synchronized void compactBySelf(boolean bySelf) {
        compactsBySelf = bySelf;
        if (bySelf) {
            table().enableAutoCompaction();
        } else {
            table().disableAutoCompaction();
        }
    }

    @Override
    public void stopReading() {
        FloorMemtable.stopReading();
    }

    @Override
    public int pending() {
        CompactionManager all = CompactionManager.instance;
        return all.getPendingTasks() + all.getActiveCompactions();
    }

    @Override
    public int sstables() {
        return table().getLiveSSTables().size();
    }

    @Override
    public long bytes() {
        return table().getLiveSSTables().stream().mapToLong(SSTableReader::onDiskLength).sum();
    }

    private static ColumnFamilyStore table() {
        return Keyspace.open(Rows.KEYSPACE).getColumnFamilyStore(Rows.TABLE);
    }
}
