package io.entresol.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.Set;
import java.util.TreeSet;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.commitlog.CommitLog;
import org.apache.cassandra.db.commitlog.CommitLogDescriptor;
import org.apache.cassandra.db.commitlog.CommitLogReadHandler;
import org.apache.cassandra.db.commitlog.CommitLogReader;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.io.util.File;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Tables whose writes Cassandra's commit log has, too: for readers of changes (CDC). */
class CommitLogTest {
    private static final int ROWS = 40;

    @BeforeAll
    static void startNode() {
        LocalNode.start();
    }

    @Test
    void readersOfChangesFindTheWritesOfATable() throws IOException {
        LocalNode.execute("CREATE TABLE %s.changes (k int PRIMARY KEY, v int)"
                + " WITH memtable = 'logged' AND cdc = true");
        LocalNode.execute("CREATE TABLE %s.skipped (k int PRIMARY KEY, v int)"
                + " WITH memtable = 'entresol'");
        for (int row = 0; row < ROWS; row++) {
            LocalNode.execute("INSERT INTO %s.changes (k, v) VALUES (?, 1)", row);
            LocalNode.execute("INSERT INTO %s.skipped (k, v) VALUES (?, 1)", row);
        }
        LocalNode.execute("DELETE FROM %s.changes WHERE k = 3");
        CommitLog.instance.sync(true);
        Set<Integer> all = new TreeSet<>();
        for (int row = 0; row < ROWS; row++) {
            all.add(row);
        }
        Changes changes = new Changes("changes");
        Changes skipped = new Changes("skipped");
        for (File log : new File(DatabaseDescriptor.getCDCLogLocation())
                .tryList((folder, name) -> CommitLogDescriptor.isValid(name))) {
            new CommitLogReader().readCommitLogSegment(changes, log, CommitLogReader.ALL_MUTATIONS,
                    true);
            new CommitLogReader().readCommitLogSegment(skipped, log, CommitLogReader.ALL_MUTATIONS,
                    true);
        }
        assertEquals(all, changes.keys);
        assertEquals(ROWS + 1, changes.count);
        assertEquals(0, skipped.count);
        assertEquals(ROWS - 1, LocalNode.execute("SELECT k FROM %s.changes").size());
    }

    @Test
    void changesOfATableWhoseWritesSkipTheCommitLogAreRefused() {
        RuntimeException refused = assertThrows(RuntimeException.class,
                () -> LocalNode.execute("CREATE TABLE %s.refused (k int PRIMARY KEY)"
                        + " WITH memtable = 'entresol' AND cdc = true"));
        assertTrue(refused.getMessage().contains("CDC"), refused.getMessage());
    }

    /** The changes of a table. */
    private static final class Changes implements CommitLogReadHandler {
        private final String table;
        private final Set<Integer> keys = new TreeSet<>();
        private int count;

        private Changes(String table) {
            this.table = table;
        }

        @Override
        public boolean shouldSkipSegmentOnError(CommitLogReadException failed) throws IOException {
            throw failed;
        }

        @Override
        public void handleUnrecoverableError(CommitLogReadException failed) throws IOException {
            throw failed;
        }

        @Override
        public void handleMutation(Mutation mutation, int bytes, int position,
                CommitLogDescriptor log) {
            for (PartitionUpdate update : mutation.getPartitionUpdates()) {
                if (update.metadata().name.equals(table)) {
                    keys.add(Int32Type.instance.compose(update.partitionKey().getKey()));
                    count++;
                }
            }
        }
    }
}
