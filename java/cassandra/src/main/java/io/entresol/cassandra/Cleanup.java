package io.entresol.cassandra;

import io.entresol.TableCursor;
import io.entresol.TableRange;
import java.util.Collection;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.utils.FBUtilities;

/** Removes the partitions of a table that the ring gives to other nodes: nobody writes to them. */
final class Cleanup {
    private final EntresolMemtable memtable;

    Cleanup(EntresolMemtable memtable) {
        this.memtable = memtable;
    }

    /** Walks over the whole table; how many partitions went. */
    long run() {
        TableMetadata metadata = memtable.metadata();
        check(metadata.keyspace);
        Collection<Range<Token>> owned = owned(metadata.keyspace);
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
                    if (goes) {
                        // A walk is long, and the ring may change on its way.
                        check(metadata.keyspace);
                        owned = owned(metadata.keyspace);
                        goes = !Range.isInRanges(owner.key().getToken(), owned);
                    }
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

    /** Rows of ranges that are to come are not the node's so far, and must stay. */
    private static void check(String keyspace) {
        StorageService node = StorageService.instance;
        if (node.isBootstrapMode() || node.getTokenMetadata()
                .getPendingRanges(keyspace, FBUtilities.getBroadcastAddressAndPort()).size() > 0) {
            throw new IllegalStateException("ranges of " + keyspace + " are on their way to this node;"
                    + " expected a ring at rest: clean up once nodes have joined or left");
        }
    }

    private static Collection<Range<Token>> owned(String keyspace) {
        Collection<Range<Token>> owned =
                StorageService.instance.getLocalReplicas(keyspace).ranges();
        if (owned.isEmpty()) {
            throw new IllegalStateException("this node owns no range of " + keyspace
                    + "; expected some: it may not have joined the ring");
        }
        return owned;
    }
}
