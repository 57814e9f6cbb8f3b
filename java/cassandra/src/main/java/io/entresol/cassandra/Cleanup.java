package io.entresol.cassandra;

import io.entresol.TableCursor;
import io.entresol.TableRange;
import java.util.Collection;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.service.StorageService;

/** Removes the partitions of a table that the ring gives to other nodes: nobody writes to them. */
final class Cleanup {
    private final EntresolMemtable memtable;

    Cleanup(EntresolMemtable memtable) {
        this.memtable = memtable;
    }

    /** Walks over the whole table; how many partitions went. */
    long run() {
        TableMetadata metadata = memtable.metadata();
        Collection<Range<Token>> owned =
                StorageService.instance.getLocalReplicas(metadata.keyspace).ranges();
        if (owned.isEmpty()) {
            throw new IllegalStateException("this node owns no range of " + metadata.keyspace
                    + "; expected some: it may not have joined the ring");
        }
        long removed = 0;
        try (Batches batches = new Batches(memtable.batch());
                TableCursor records = memtable.table().scanUnfolded(TableRange.ALL)) {
            RowKey.Owner owner = null;
            boolean goes = false;
            while (records.next()) {
                byte[] key = records.key();
                if (owner == null || !owner.owns(key)) {
                    owner = RowKey.owner(key, metadata);
                    goes = !Range.isInRanges(owner.key().getToken(), owned);
                    removed += goes ? 1 : 0;
                }
                if (goes) {
                    batches.next().remove(memtable.table(), key);
                }
            }
            batches.write();
        }
        return removed;
    }
}
