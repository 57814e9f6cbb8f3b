package io.entresol.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories.OnTxnErr;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.concurrent.Refs;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** SSTables that validation and streaming leave. */
class TemporariesTest {
    private static final int KEYS = 1_000;

    @BeforeAll
    static void startNode() {
        LocalNode.start();
    }

    private static int onDisk(ColumnFamilyStore cfs) {
        return cfs.getDirectories().sstableLister(OnTxnErr.THROW).list().size();
    }

    /** A compaction strategy may have one range written as several SSTables. */
    @Test
    void temporarySstablesStayWhileTheyAreReadAndGoThenWithAllTheirShards() {
        LocalNode.execute("CREATE TABLE %s.streamed (k int PRIMARY KEY, v text) WITH memtable ="
                + " 'entresol' AND compaction = {'class': 'UnifiedCompactionStrategy',"
                + " 'base_shard_count': 4, 'min_sstable_size': '0B'}");
        for (int key = 0; key < KEYS; key++) {
            LocalNode.execute("INSERT INTO %s.streamed (k, v) VALUES (?, ?)", key, "x".repeat(4_000));
        }
        ColumnFamilyStore cfs = LocalNode.table("streamed");
        Temporaries temporaries = ((EntresolMemtable) cfs.getTracker().getView()
                .getCurrentMemtable()).temporaries();
        Token least = cfs.getPartitioner().getMinimumToken();
        Range<PartitionPosition> all = Range.makeRowRange(least, least);
        Refs<SSTableReader> read = new Refs<>();
        cfs.writeAndAddMemtableRanges(null, () -> List.of(all), read);
        int written = onDisk(cfs);
        assertTrue(written > 1, "SSTables that were written: " + written);
        temporaries.removeUnused();
        assertEquals(written, onDisk(cfs), "while somebody reads them");
        read.release();
        // Cassandra closes their files behind the release.
        assertTimeoutPreemptively(Duration.ofSeconds(60), () -> {
            while (onDisk(cfs) > 0) {
                temporaries.removeUnused();
            }
        });
        assertEquals(KEYS, LocalNode.execute("SELECT * FROM %s.streamed").size());
    }
}
