package io.entresol.cassandra;

import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.index.Index;
import org.apache.cassandra.index.internal.CassandraIndex;

/** Builds secondary indexes of tables on flash: Cassandra's own builders read SSTables only. */
final class IndexBuild {
    private static final int PAGE_ROWS = 512;

    private IndexBuild() {
    }

    /** Puts all rows of a memtable into the indexes of its table that are not built. */
    static void run(EntresolMemtable memtable, ColumnFamilyStore cfs) {
        Set<Index> indexes = new LinkedHashSet<>();
        for (Index index : cfs.indexManager.listIndexes()) {
            if (!(index instanceof CassandraIndex)) {
                throw new InvalidRequestException("the index " + index.getIndexMetadata().name
                        + " of " + cfs.metadata() + " keeps entries of a table on flash in the Java"
                        + " heap alone, which a restart loses; expected a secondary index"
                        + " (CREATE INDEX … USING 'legacy_local_table')");
            }
            if (!SystemKeyspace.isIndexBuilt(cfs.getKeyspaceName(), index.getIndexMetadata().name)) {
                indexes.add(index);
            }
        }
        if (!indexes.isEmpty()) {
            memtable.getFlushSet(null, null).forEach(partition ->
                    cfs.indexManager.indexPartition(partition.partitionKey(), indexes, PAGE_ROWS));
        }
    }

    /**
     * Has the next start build the indexes of a table anew whose memtable becomes another one. Until
     * then Cassandra keeps the memtables of indexes as they were, and what these get meanwhile is not
     * where the next start looks: it is in the store, or in a heap without a commit log.
     */
    static void renewAtStart(ColumnFamilyStore cfs) {
        for (Index index : cfs.indexManager.listIndexes()) {
            SystemKeyspace.setIndexRemoved(cfs.getKeyspaceName(), index.getIndexMetadata().name);
        }
    }
}
