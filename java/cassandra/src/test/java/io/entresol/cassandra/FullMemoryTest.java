package io.entresol.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.Compression;
import io.entresol.OrderedTable;
import io.entresol.Store;
import io.entresol.StoreException;
import io.entresol.TableCursor;
import io.entresol.TableRange;
import io.entresol.cassandra.Catalog.Generation;
import io.entresol.cassandra.Catalog.State;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.schema.TableId;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Stores in which changes that a kill left fill the memory for them. */
class FullMemoryTest {
    private static final int VALUE_BYTES = 3_000;

    @BeforeAll
    static void startNode() {
        LocalNode.start();
        LocalNode.execute("CREATE TABLE %s.waits (k int PRIMARY KEY, v blob, w int)"
                + " WITH memtable = 'entresol'");
        LocalNode.execute("CREATE INDEX waiting ON %s.waits (w)");
        LocalNode.execute("INSERT INTO %s.waits (k, v, w) VALUES (1, ?, 2)",
                ByteBuffer.allocate(VALUE_BYTES));
    }

    @Test
    void aStartFoldsChangesOfTablesBeforeItWrites() throws IOException {
        start(LocalNode.table("waits"));
    }

    @Test
    void aStartFoldsChangesOfIndexesBeforeItWrites() throws IOException {
        start(LocalNode.table("waits").indexManager.getIndexByName("waiting").getBackingTable()
                .orElseThrow());
    }

    /** A start removes what a truncation left before any table has a memtable. */
    private static void start(ColumnFamilyStore table) throws IOException {
        EntresolMemtable memtable =
                (EntresolMemtable) table.getTracker().getView().getCurrentMemtable();
        TableName truncated = new TableName(TableId.fromUUID(UUID.randomUUID()), "");
        Parameters parameters = parameters(table.name);
        try (Store killed = Store.open(NodeStore.options(parameters))) {
            Catalog catalog = new Catalog(killed);
            Generation live = memtable.recorded();
            catalog.put(live);
            new Layouts(catalog, live.table()).of(table.metadata());
            Generation dropping = Generation.first(truncated, 1).in(State.DROPPING);
            killed.table(dropping.ordered()).put(new byte[] {1}, new byte[] {2});
            catalog.put(dropping);
            fill(memtable.table(), killed.table(live.ordered()));
            StoreException refused =
                    assertThrows(StoreException.class, () -> catalog.remove(dropping));
            assertTrue(refused.getMessage().contains("merges cannot go on"), refused.getMessage());
        }
        NodeStore started = NodeStore.of(parameters);
        assertTrue(started.catalog.generations(truncated).isEmpty());
        try (TableCursor rows = started.table(memtable.recorded()).scanUnfolded(TableRange.ALL)) {
            assertTrue(rows.next());
        }
        assertEquals(1, started.catalog.generations().size());
    }

    private static Parameters parameters(String name) throws IOException {
        Path file = Path.of("target", name + ".store").toAbsolutePath();
        Files.deleteIfExists(file);
        long mebibyte = 1 << 20;
        return new Parameters(file.toString(), 128 * mebibyte, 64 * mebibyte, mebibyte / 16,
                16 * mebibyte, mebibyte, Compression.NONE, "", false);
    }

    /** Adds parts of one row of a table until nobody who cannot fold them has room for more. */
    private static void fill(OrderedTable from, OrderedTable to) {
        byte[] key;
        byte[] part;
        try (TableCursor rows = from.scanUnfolded(TableRange.ALL)) {
            assertTrue(rows.next());
            key = rows.key();
            ByteBuffer first = new Parts(rows).next();
            part = new byte[first.remaining()];
            first.duplicate().get(part);
        }
        StoreException refused = assertThrows(StoreException.class, () -> {
            for (int parts = 0; parts < 100_000; parts++) {
                to.add(key, part);
            }
        });
        assertTrue(refused.getMessage().contains("wait for merges"), refused.getMessage());
    }
}
