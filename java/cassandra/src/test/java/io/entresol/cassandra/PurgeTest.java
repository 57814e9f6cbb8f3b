package io.entresol.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.TableCursor;
import io.entresol.TableRange;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What deletions and lifetimes leave, once {@code gc_grace_seconds} are over. */
class PurgeTest {
    private static final int GRACE = 3600;
    private static final int ROWS = 400;

    @BeforeAll
    static void startNode() {
        LocalNode.start();
    }

    private static EntresolMemtable made(String table) {
        LocalNode.execute("CREATE TABLE %s." + table + " (k int, c int, s int static, v text,"
                + " PRIMARY KEY (k, c)) WITH memtable = 'entresol' AND gc_grace_seconds = " + GRACE);
        return (EntresolMemtable) LocalNode.table(table).getTracker().getView().getCurrentMemtable();
    }

    /** Walks until nothing is left to do; each round merges what the last one added. */
    private static void purge(EntresolMemtable memtable) {
        for (int round = 0; round < 10; round++) {
            if (new Patrol(memtable, memtable.purge(), bytes -> { }).walk() == 0) {
                return;
            }
            fillUntilMerged();
        }
        throw new AssertionError("the patrol finds something in each round");
    }

    /** Other tables' changes have the store merge. */
    private static void fillUntilMerged() {
        LocalNode.execute("CREATE TABLE IF NOT EXISTS %s.other (k int PRIMARY KEY, v text)"
                + " WITH memtable = 'entresol'");
        for (int row = 0; row < 2_000; row++) {
            LocalNode.execute("INSERT INTO %s.other (k, v) VALUES (?, ?)", row, "x".repeat(100));
        }
    }

    private static int records(EntresolMemtable memtable) {
        int count = 0;
        try (TableCursor rows = memtable.table().scanUnfolded(TableRange.ALL)) {
            while (rows.next()) {
                count++;
            }
        }
        return count;
    }

    @Test
    void expiredAndDeletedRowsLeaveFlash() {
        EntresolMemtable memtable = made("expiring");
        for (int row = 0; row < ROWS; row++) {
            LocalNode.execute("INSERT INTO %s.expiring (k, c, v) VALUES (?, ?, 'v')"
                    + (row % 2 == 0 ? " USING TTL 60" : ""), row % 7, row);
        }
        LocalNode.execute("DELETE FROM %s.expiring WHERE k = 1 AND c = 1");
        TestClock.advance(61);
        assertEquals(ROWS / 2 - 1, LocalNode.execute("SELECT * FROM %s.expiring").size());
        purge(memtable);
        assertTrue(records(memtable) >= ROWS, "tombstones stay for gc_grace_seconds");
        TestClock.advance(GRACE + 60);
        purge(memtable);
        assertEquals(ROWS / 2 - 1, records(memtable));
        assertEquals(ROWS / 2 - 1, LocalNode.execute("SELECT * FROM %s.expiring").size());
    }

    @Test
    void whatAPartitionsDeletionHidLeavesFlashBeforeTheDeletion() {
        EntresolMemtable memtable = made("hidden");
        for (int row = 0; row < ROWS; row++) {
            LocalNode.execute("INSERT INTO %s.hidden (k, c, s, v) VALUES (?, ?, 1, 'v')"
                    + " USING TIMESTAMP 1000", row % 4, row);
        }
        LocalNode.execute("DELETE FROM %s.hidden USING TIMESTAMP 2000 WHERE k = 1");
        LocalNode.execute("DELETE FROM %s.hidden USING TIMESTAMP 2000 WHERE k = 2 AND c > 200");
        LocalNode.execute("INSERT INTO %s.hidden (k, c, v) VALUES (1, 5000, 'later')"
                + " USING TIMESTAMP 3000");
        int shown = LocalNode.execute("SELECT * FROM %s.hidden").size();
        TestClock.advance(GRACE + 60);
        purge(memtable);
        assertEquals(shown, LocalNode.execute("SELECT * FROM %s.hidden").size());
        assertEquals(4, memtable.partitionCount());
        // Each partition but the one that was deleted has its static row.
        assertEquals(shown + 3, records(memtable));
        assertFalse(LocalNode.execute("SELECT * FROM %s.hidden WHERE k = 1").isEmpty());
    }
}
