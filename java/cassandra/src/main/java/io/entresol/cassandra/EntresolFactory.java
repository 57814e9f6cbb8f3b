package io.entresol.cassandra;

import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.schema.TableMetadataRef;

/** Makes memtables of one configuration. */
record EntresolFactory(Parameters parameters) implements Memtable.Factory {
    @Override
    public Memtable create(AtomicReference<CommitLogPosition> commitLogLowerBound,
            TableMetadataRef metadata, Memtable.Owner owner) {
        return new EntresolMemtable(this, commitLogLowerBound, metadata, owner);
    }

    @Override
    public boolean writesShouldSkipCommitLog() {
        return true;
    }

    @Override
    public boolean writesAreDurable() {
        return true;
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
