package io.entresol.cassandra;

import io.entresol.Store;
import java.util.Collection;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.commitlog.CommitLog;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.utils.concurrent.OpOrder;

/** Tells the commit log what the store has by itself, where tables write to both. */
final class CommitLogMarks {
    private CommitLogMarks() {
    }

    /** Syncs the store, and lets the commit log go of what was written to the tables before. */
    static void advance(Store store, Collection<EntresolMemtable> memtables) {
        CommitLogPosition position = CommitLog.instance.getCurrentPosition();
        // Whoever has a position in the log below this one has written to the store after this.
        OpOrder.Barrier barrier = Keyspace.writeOrder.newBarrier();
        barrier.issue();
        barrier.await();
        store.sync();
        for (EntresolMemtable memtable : memtables) {
            CommitLog.instance.discardCompletedSegments(memtable.metadata().id,
                    CommitLogPosition.NONE, position);
        }
    }
}
