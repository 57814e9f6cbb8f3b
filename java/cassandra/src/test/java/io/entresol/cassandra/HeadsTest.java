package io.entresol.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.cassandra.cql3.UntypedResultSet;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Readers look for heads of partitions only in tables that may have some. */
class HeadsTest {
    @BeforeAll
    static void startNode() {
        LocalNode.start();
    }

    @Test
    void aDeletionOfARangeIsSeenByReadsOfOneRow() {
        create("ranges");
        insert("ranges");
        assertFalse(memtable("ranges").hasHeads());
        LocalNode.execute("DELETE FROM %s.ranges WHERE k = 1 AND c >= 1");
        assertTrue(memtable("ranges").hasHeads());
        assertEquals(1, row("ranges", 0).size());
        assertEquals(0, row("ranges", 1).size());
    }

    @Test
    void aStaticValueIsSeenByReadsOfOneRow() {
        create("statics");
        insert("statics");
        assertFalse(memtable("statics").hasHeads());
        LocalNode.execute("INSERT INTO %s.statics (k, s) VALUES (1, 7)");
        assertEquals(7, row("statics", 1).one().getInt("s"));
    }

    @Test
    void thatThereAreHeadsIsRecordedAndEndsWithTheRows() {
        create("records");
        insert("records");
        assertFalse(memtable("records").recorded().hasHeads());
        LocalNode.execute("DELETE FROM %s.records WHERE k = 1");
        assertTrue(memtable("records").recorded().hasHeads());
        LocalNode.table("records").truncateBlocking();
        assertFalse(memtable("records").recorded().hasHeads());
    }

    private static void create(String table) {
        LocalNode.execute("CREATE TABLE %s." + table + " (k int, c int, s int static, v int,"
                + " PRIMARY KEY (k, c)) WITH memtable = 'entresol'");
    }

    private static void insert(String table) {
        for (int row = 0; row < 2; row++) {
            LocalNode.execute("INSERT INTO %s." + table + " (k, c, v) VALUES (1, " + row + ", 0)");
        }
    }

    private static UntypedResultSet row(String table, int row) {
        return LocalNode.execute("SELECT * FROM %s." + table + " WHERE k = 1 AND c = " + row);
    }

    private static EntresolMemtable memtable(String table) {
        return (EntresolMemtable) LocalNode.table(table).getTracker().getView()
                .getCurrentMemtable();
    }
}
