package io.entresol.cassandra;

import java.util.HashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.memtable.TrieMemtable;
import org.apache.cassandra.schema.SchemaConstants;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.service.StorageService;

/** Makes memtables of one configuration. */
record EntresolFactory(Parameters parameters) implements Memtable.Factory {
    @Override
    public Memtable create(AtomicReference<CommitLogPosition> commitLogLowerBound,
            TableMetadataRef metadata, Memtable.Owner owner) {
        if (SchemaConstants.isLocalSystemKeyspace(metadata.keyspace)) {
            // Of a configuration that is the default of all tables. The node reads these before
            // anything else, and none of them is large.
            Memtable.Factory heap = TrieMemtable.factory(new HashMap<>());
            return heap.create(commitLogLowerBound, metadata, owner);
        }
        return new EntresolMemtable(this, commitLogLowerBound, metadata, owner);
    }

    @Override
    public boolean writesShouldSkipCommitLog() {
        return !parameters.writesLog();
    }

    /**
     * Not while a node starts: the commit log has what a table on flash got before it came there, and
     * what a node took that was started without the plug-in.
     */
    @Override
    public boolean writesAreDurable() {
        return !parameters.writesLog() && StorageService.instance.isDaemonSetupCompleted();
    }

    @Override
    public boolean streamToMemtable() {
        return true;
    }

    @Override
    public boolean streamFromMemtable() {
        return true;
    }
}
