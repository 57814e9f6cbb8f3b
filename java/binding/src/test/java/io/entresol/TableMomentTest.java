package io.entresol;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Scans of one moment beside writers and merges. */
class TableMomentTest {
    private static final long MIB = 1 << 20;
    private static final int PLACES = 50;
    private static final int FILLERS = 400;
    private static final int MOVES = 5_000;
    private static final int SCANS = 200;

    @TempDir
    Path folder;

    private Store open() {
        // Merges come again and again, and take rows from leaf to leaf.
        return Store.open(StoreOptions.on(folder.resolve("data")).capacity(96 * MIB)
                .memory(48 * MIB).orderedTables(16 * MIB).waitingChanges(60_000)
                .durability(Durability.MEMORY));
    }

    private static byte[] key(String first, int number) {
        return String.format("%s %04d", first, number).getBytes(UTF_8);
    }

    private static void fill(OrderedTable table, int rows) {
        for (int number = 0; number < rows; number++) {
            table.put(key("m", number), new byte[100]);
        }
    }

    /** The rows of the pair: key and value of each. */
    private static List<String> pair(OrderedTable table, TableRange range) {
        List<String> rows = new ArrayList<>();
        try (TableCursor cursor = table.scan(range)) {
            while (cursor.next()) {
                String key = new String(cursor.key(), UTF_8);
                if (!key.startsWith("m")) {
                    rows.add(key.substring(1) + "=" + new String(cursor.value(), UTF_8));
                }
                assertEquals(1, cursor.moments());
            }
        }
        return rows;
    }

    @Test
    void aPairOfRowsThatABatchMovesIsNeverSeenHalf() throws Exception {
        ExecutorService threads = Executors.newSingleThreadExecutor();
        try (Store store = open()) {
            OrderedTable table = store.table("pairs");
            fill(table, FILLERS);
            table.put(key("a", 0), new byte[] {'0'});
            table.put(key("z", 0), new byte[] {'0'});
            Future<?> writer = threads.submit(() -> {
                try (TableBatch batch = store.batch()) {
                    for (int move = 0; move < MOVES; move++) {
                        byte[] value = Integer.toString(move).getBytes(UTF_8);
                        batch.clear()
                                .remove(table, key("a", move % PLACES))
                                .remove(table, key("z", move % PLACES))
                                .put(table, key("a", (move + 1) % PLACES), value)
                                .put(table, key("z", (move + 1) % PLACES), value)
                                .put(table, key("m", move * 37 % FILLERS), new byte[100])
                                .write();
                    }
                }
            });
            TableRange range = TableRange.ALL.pageBytes(1 << 20).atOneMoment();
            for (int scan = 0; scan < SCANS || !writer.isDone(); scan++) {
                List<String> rows = pair(table, scan % 2 == 0 ? range : range.descending());
                assertEquals(2, rows.size(), rows.toString());
                assertEquals(rows.get(0), rows.get(1));
            }
            writer.get();
        }
        threads.shutdown();
    }

    @Test
    void eachPageIsOfAMomentOfItsOwn() {
        try (Store store = open()) {
            OrderedTable table = store.table("pages");
            fill(table, 3_000);
            TableRange range = TableRange.ALL;
            try (TableCursor cursor = table.scanUnfolded(range.atOneMoment())) {
                assertEquals(0, cursor.moments());
                int rows = 0;
                while (cursor.next()) {
                    rows++;
                }
                assertEquals(3_000, rows);
                int pages = cursor.moments();
                assertTrue(pages > 4 && pages < 10, pages + " pages");
            }
            try (TableCursor cursor = table.scan(range)) {
                assertTrue(cursor.next());
                assertEquals(0, cursor.moments());
            }
        }
    }

    @Test
    void valuesThatAreRecordsOfTheirOwnAreOfTheMomentToo() throws Exception {
        ExecutorService threads = Executors.newSingleThreadExecutor();
        try (Store store = open()) {
            OrderedTable table = store.table("large");
            ByteBuffer value = ByteBuffer.allocate(20_000);
            table.put(key("a", 0), value.array());
            table.put(key("z", 0), value.array());
            Future<?> writer = threads.submit(() -> {
                try (TableBatch batch = store.batch()) {
                    for (int number = 1; number < 500; number++) {
                        byte[] next = value.putInt(0, number).array();
                        batch.clear().put(table, key("a", 0), next).put(table, key("z", 0), next)
                                .write();
                    }
                }
            });
            for (int scan = 0; scan < SCANS || !writer.isDone(); scan++) {
                try (TableCursor cursor = table.scan(TableRange.ALL.atOneMoment())) {
                    assertTrue(cursor.next());
                    byte[] first = cursor.value();
                    assertTrue(cursor.next());
                    assertArrayEquals(first, cursor.value());
                    assertEquals(1, cursor.moments());
                }
            }
            writer.get();
        }
        threads.shutdown();
    }

    @Test
    void aScanByRankIsOfNoOneMoment() {
        try (Store store = open()) {
            OrderedTable table = store.countedTable("counted");
            assertThrows(IllegalArgumentException.class,
                    () -> table.scanFrom(0, TableRange.ALL.atOneMoment()));
        }
    }
}
