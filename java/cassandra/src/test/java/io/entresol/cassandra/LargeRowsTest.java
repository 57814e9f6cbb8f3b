package io.entresol.cassandra;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.TableCursor;
import io.entresol.TableRange;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.management.JMX;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import org.apache.cassandra.cql3.UntypedResultSet;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Rows, parts and heads that are larger than a part of an ordered table may be. */
class LargeRowsTest {
    private static final int BYTES = 120_000;
    private static final int FEW = 5;

    @BeforeAll
    static void startNode() {
        LocalNode.start();
    }

    @Test
    void largeCellsAreReadBeforeAndAfterMerges() {
        create("cells");
        insert("cells", 1, value(1));
        LocalNode.execute("UPDATE %s.large_cells SET w = ? WHERE k = 1 AND c = 1",
                buffer(value(2)));
        LocalNode.execute("UPDATE %s.large_cells SET n = 7 WHERE k = 1 AND c = 1");
        insert("cells", 2, value(3));
        for (boolean merged : new boolean[] {false, true}) {
            if (merged) {
                merge("cells");
            }
            assertArrayEquals(value(1), cell("cells", 1, "v"), "merged: " + merged);
            assertArrayEquals(value(2), cell("cells", 1, "w"), "merged: " + merged);
            assertArrayEquals(value(3), cell("cells", 2, "v"), "merged: " + merged);
            assertNull(cell("cells", 2, "w"));
            var rows = LocalNode.execute("SELECT c, n FROM %s.large_cells WHERE k = 1");
            assertEquals(2, rows.size());
            assertEquals(7, rows.iterator().next().getInt("n"));
        }
        insert("cells", 1, value(4));
        assertArrayEquals(value(4), cell("cells", 1, "v"));
        assertArrayEquals(value(2), cell("cells", 1, "w"));
        merge("cells");
        assertArrayEquals(value(4), cell("cells", 1, "v"));
        LocalNode.execute("DELETE v, w FROM %s.large_cells WHERE k = 1 AND c = 1");
        merge("cells");
        assertNull(cell("cells", 1, "v"));
        assertEquals(7, LocalNode.execute("SELECT n FROM %s.large_cells WHERE k = 1 AND c = 1").one()
                .getInt("n"));
    }

    @Test
    void cellsOfAllSizesAroundTheBoundsOfPiecesAreRead() {
        create("sizes");
        for (int bytes = 8_130; bytes < 8_200; bytes++) {
            insert("sizes", bytes, new byte[bytes]);
        }
        for (int bytes = 16_340; bytes < 16_390; bytes++) {
            insert("sizes", bytes, new byte[bytes]);
        }
        for (int turn = 0; turn < 2; turn++) {
            var rows = LocalNode.execute("SELECT c, v FROM %s.large_sizes WHERE k = 1");
            assertEquals(120, rows.size());
            for (UntypedResultSet.Row row : rows) {
                assertEquals(row.getInt("c"), row.getBytes("v").remaining());
            }
            merge("sizes");
        }
    }

    @Test
    void aLargeStaticRowIsRead() {
        create("statics");
        LocalNode.execute("INSERT INTO %s.large_statics (k, s) VALUES (1, ?)", buffer(value(5)));
        LocalNode.execute("DELETE FROM %s.large_statics WHERE k = 1 AND c > 5");
        insert("statics", 1, value(6));
        merge("statics");
        assertArrayEquals(value(5), cell("statics", 1, "s"));
        assertArrayEquals(value(6), cell("statics", 1, "v"));
    }

    /** 64 KiB wait at most, so merges come between updates. */
    @Test
    void readersBesideAWriterSeeWholeUpdates() throws Exception {
        create("beside");
        insert("beside", 1, value(0));
        var executor = Executors.newSingleThreadExecutor();
        try {
            Future<?> written = executor.submit(() -> {
                for (int seed = 1; seed < 200; seed++) {
                    insert("beside", 1, value(seed));
                    insert("beside", 1000 + seed, value(seed));
                }
            });
            int before = 0;
            while (!written.isDone()) {
                byte[] found = cell("beside", 1, "v");
                int seed = ByteBuffer.wrap(found).getInt();
                assertTrue(seed >= before, seed + " after " + before);
                assertArrayEquals(value(seed), found);
                before = seed;
                for (var row : LocalNode.execute("SELECT c, v FROM %s.large_beside WHERE k = 1"
                        + " AND c > 1 ORDER BY c DESC LIMIT 1")) {
                    assertEquals(row.getInt("c") - 1000, row.getBytes("v").getInt(0));
                }
            }
            written.get();
        } finally {
            executor.shutdownNow();
        }
        assertEquals(200, LocalNode.execute("SELECT c FROM %s.large_beside WHERE k = 1").size());
    }

    /** A reader beside the writer may meet the first ones alone. */
    @Test
    void aPartCountsOnceItsLastPieceIsThere() {
        create("pieces");
        insert("pieces", 1, Arrays.copyOf(value(7), 20_000));
        LocalNode.execute("INSERT INTO %s.large_pieces (k, c, n) VALUES (1, 2, 3)");
        merge("pieces");
        EntresolMemtable memtable = memtable("pieces");
        List<byte[]> pieces = new ArrayList<>();
        byte[] key;
        try (TableCursor rows = memtable.table().scanUnfolded(TableRange.ALL)) {
            assertTrue(rows.next());
            Parts.cut(rows.baseSlice(), piece -> {
                byte[] copied = new byte[piece.remaining()];
                piece.get(copied);
                pieces.add(copied);
            });
            assertTrue(rows.next());
            key = rows.key();
        }
        assertEquals(3, pieces.size());
        for (int piece = 0; piece < pieces.size(); piece++) {
            assertNull(cell("pieces", 2, "v"), "after " + piece);
            assertEquals(2, LocalNode.execute("SELECT * FROM %s.large_pieces").size());
            memtable.table().add(key, pieces.get(piece));
            if (piece == 0) {
                fillOthers();
            }
        }
        for (int turn = 0; turn < 2; turn++) {
            assertArrayEquals(Arrays.copyOf(value(7), 20_000), cell("pieces", 2, "v"));
            assertEquals(3, LocalNode.execute("SELECT n FROM %s.large_pieces WHERE k = 1 AND c = 2")
                    .one().getInt("n"));
            merge("pieces");
        }
        // That a merge met the first piece is forgotten as a sweep ends that found them all.
        for (int round = 0; round < 20 && !heldBack().isEmpty(); round++) {
            fillOthers();
        }
        assertEquals("", heldBack());
    }

    @Test
    void anUpdateLargerThanABatchIsRefusedWithItsSize() {
        create("refused");
        Throwable refused = assertThrows(RuntimeException.class,
                () -> insert("refused", 1, new byte[3 << 20]));
        StringBuilder all = new StringBuilder();
        for (Throwable each = refused; each != null; each = each.getCause()) {
            all.append(each.getMessage());
        }
        assertTrue(all.toString().contains("expected at most"), all.toString());
        insert("refused", 1, value(1));
        assertArrayEquals(value(1), cell("refused", 1, "v"));
    }

    /**
     * Other tables' changes have the store merge, until rows of this one have a value, and at most
     * the few small parts that a leaf holds beside a large one.
     */
    private static void merge(String table) {
        EntresolMemtable memtable = memtable(table);
        for (int round = 0; round < 20; round++) {
            if (!waits(memtable)) {
                return;
            }
            fillOthers();
        }
        throw new AssertionError("rows still have their parts; held back: "
                + heldBack());
    }

    private static void fillOthers() {
        LocalNode.execute("CREATE TABLE IF NOT EXISTS %s.large_other (k int PRIMARY KEY, v text)"
                + " WITH memtable = 'entresol'");
        for (int row = 0; row < 1_000; row++) {
            LocalNode.execute("INSERT INTO %s.large_other (k, v) VALUES (?, ?)", row,
                    "x".repeat(100));
        }
    }

    private static EntresolMemtable memtable(String table) {
        return (EntresolMemtable) LocalNode.table("large_" + table).getTracker().getView()
                .getCurrentMemtable();
    }

    private static String heldBack() {
        try {
            return JMX.newMXBeanProxy(ManagementFactory.getPlatformMBeanServer(),
                    new ObjectName(StoreBean.NAME), StoreMXBean.class).getHeldBack();
        } catch (MalformedObjectNameException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static boolean waits(EntresolMemtable memtable) {
        try (TableCursor rows = memtable.table().scanUnfolded(TableRange.ALL)) {
            while (rows.next()) {
                if (!rows.hasBase() || rows.parts() > FEW) {
                    return true;
                }
            }
            return false;
        }
    }

    private static void create(String table) {
        LocalNode.execute("CREATE TABLE %s.large_" + table + " (k int, c int, s blob static, v blob,"
                + " w blob, n int, PRIMARY KEY (k, c)) WITH memtable = 'entresol'");
    }

    private static void insert(String table, int row, byte[] value) {
        LocalNode.execute("INSERT INTO %s.large_" + table + " (k, c, v) VALUES (1, ?, ?)", row,
                buffer(value));
    }

    private static byte[] cell(String table, int row, String column) {
        var found = LocalNode.execute("SELECT c, " + column + " FROM %s.large_" + table
                + " WHERE k = 1 AND c = ?", row).one();
        if (!found.has(column)) {
            return null;
        }
        ByteBuffer bytes = found.getBytes(column);
        byte[] copied = new byte[bytes.remaining()];
        bytes.duplicate().get(copied);
        return copied;
    }

    /** Bytes that begin with the seed. */
    private static byte[] value(int seed) {
        byte[] value = new byte[BYTES];
        new Random(seed).nextBytes(value);
        ByteBuffer.wrap(value).putInt(0, seed);
        return value;
    }

    private static ByteBuffer buffer(byte[] value) {
        return ByteBuffer.wrap(value);
    }
}
