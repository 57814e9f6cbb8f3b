package io.entresol.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.stream.StreamSupport;
import javax.management.JMX;
import javax.management.ObjectName;
import org.apache.cassandra.db.ColumnFamilyStore.FlushReason;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What becomes of tables on flash when their schema changes, or they end. */
class LifecycleTest {
    private static final int ROWS = 300;

    @BeforeAll
    static void startNode() {
        LocalNode.start();
    }

    private static void fill(String table) {
        LocalNode.execute("CREATE TABLE %s." + table + " (k int, c int, s int static, v text,"
                + " w text, PRIMARY KEY (k, c)) WITH memtable = 'entresol'");
        for (int row = 0; row < ROWS; row++) {
            LocalNode.execute("INSERT INTO %s." + table + " (k, c, s, v, w) VALUES (?, ?, ?, ?, ?)",
                    row % 10, row, row, "v" + row, "w" + row);
        }
    }

    private static int count(String table) {
        return LocalNode.execute("SELECT * FROM %s." + table).size();
    }

    private static List<String> column(String table, String column) {
        return StreamSupport.stream(LocalNode.execute("SELECT " + column + " FROM %s." + table
                + " WHERE k = 3").spliterator(), false)
                .map(row -> row.has(column) ? row.getString(column) : null).toList();
    }

    /** An index is built behind the statement that makes it. */
    private static void awaitIndex(String name) {
        assertTimeoutPreemptively(Duration.ofSeconds(60), () -> {
            var indexes = LocalNode.table("indexed").indexManager;
            while (!indexes.isIndexQueryable(indexes.getIndexByName(name))) {
                Thread.onSpinWait();
            }
        });
    }

    private static StoreMXBean store() throws Exception {
        return JMX.newMXBeanProxy(ManagementFactory.getPlatformMBeanServer(),
                new ObjectName(StoreBean.NAME), StoreMXBean.class);
    }

    @Test
    void aTableWhoseStoreCannotBeOpenedIsNotMade() {
        String made = "CREATE TABLE %s.refused (k int PRIMARY KEY) WITH memtable = ";
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> LocalNode.execute(made + "'absent'"));
        assertTrue(refused.getMessage().contains("no folder/store"), refused.getMessage());
        LocalNode.execute(made + "'entresol'");
        assertEquals(0, count("refused"));
    }

    @Test
    void operatorsSeeTheStore() throws Exception {
        fill("shown");
        assertTrue(store().getTables().contains(LocalNode.KEYSPACE + ".shown"));
        assertTrue(store().getFigures().size() > 20, "figures: " + store().getFigures());
        assertEquals(List.of(), store().getUnknown());
        assertEquals(0, store().cleanup(LocalNode.KEYSPACE, "shown"));
        assertEquals(ROWS, count("shown"));
        assertEquals(1, LocalNode.execute("SELECT * FROM entresol.tables").stream()
                .filter(row -> row.getString("table_name").equals("shown")).count());
        assertTrue(LocalNode.execute("SELECT * FROM entresol.stores").size() > 20);
        assertThrows(IllegalArgumentException.class, () -> store().purge("system", "local"));
    }

    @Test
    void snapshotsHaveAllRows() {
        fill("copied");
        LocalNode.table("copied").snapshot("evening");
        LocalNode.execute("TRUNCATE %s.copied");
        assertEquals(0, count("copied"));
        LocalNode.table("copied").importNewSSTables(Set.of(LocalNode.table("copied")
                .getDirectories().getCFDirectories().get(0).toPath() + "/snapshots/evening"),
                false, false, false, false, false, false, true);
        assertEquals(ROWS, count("copied"));
    }

    @Test
    void rowsAreReadAfterColumnsCameAndWent() {
        fill("altered");
        LocalNode.execute("ALTER TABLE %s.altered ADD x text");
        LocalNode.execute("INSERT INTO %s.altered (k, c, x) VALUES (3, 1000, 'x')");
        LocalNode.execute("ALTER TABLE %s.altered DROP w");
        LocalNode.execute("INSERT INTO %s.altered (k, c, v) VALUES (3, 1001, 'late')");
        assertEquals(ROWS + 2, count("altered"));
        List<String> values = column("altered", "v");
        assertEquals(List.of("v3", "v13"), values.subList(0, 2));
        assertEquals("late", values.get(values.size() - 1));
        assertEquals("x", column("altered", "x").get(30));
        // The name with its old type comes back without the old cells.
        LocalNode.execute("ALTER TABLE %s.altered ADD w text");
        assertTrue(column("altered", "w").stream().allMatch(value -> value == null));
    }

    @Test
    void rowsMoveToSstablesAndBack() throws Exception {
        fill("moved");
        LocalNode.execute("ALTER TABLE %s.moved WITH memtable = 'default'");
        assertEquals(ROWS, count("moved"));
        LocalNode.table("moved").forceBlockingFlush(FlushReason.UNIT_TESTS);
        assertTrue(LocalNode.table("moved").getLiveSSTables().size() > 0);
        LocalNode.execute("INSERT INTO %s.moved (k, c, v) VALUES (3, 2000, 'heap')");
        LocalNode.execute("ALTER TABLE %s.moved WITH memtable = 'entresol'");
        LocalNode.execute("INSERT INTO %s.moved (k, c, v) VALUES (3, 2001, 'flash')");
        LocalNode.table("moved").forceBlockingFlush(FlushReason.UNIT_TESTS);
        assertEquals(ROWS + 2, count("moved"));
        assertEquals(2, store().absorb(LocalNode.KEYSPACE, "moved"));
        assertEquals(0, LocalNode.table("moved").getLiveSSTables().size());
        assertEquals(ROWS + 2, count("moved"));
        LocalNode.execute("DELETE FROM %s.moved WHERE k = 3");
        assertEquals(List.of(), column("moved", "v"));
    }

    @Test
    void truncatedAndDroppedRowsAreGone() {
        fill("ended");
        LocalNode.execute("TRUNCATE %s.ended");
        assertEquals(0, count("ended"));
        LocalNode.execute("INSERT INTO %s.ended (k, c, v) VALUES (1, 1, 'new')");
        assertEquals(1, count("ended"));
        LocalNode.execute("DROP TABLE %s.ended");
        fill("ended");
        assertEquals(ROWS, count("ended"));
    }

    @Test
    void flushesOfUsersWriteNothing() {
        fill("kept");
        LocalNode.table("kept").forceBlockingFlush(FlushReason.USER_FORCED);
        assertEquals(0, LocalNode.table("kept").getLiveSSTables().size());
        assertEquals(ROWS, count("kept"));
    }

    @Test
    void indexesFindRowsBeforeAndAfterTheirBuild() {
        fill("indexed");
        LocalNode.execute("CREATE INDEX by_v ON %s.indexed (v)");
        awaitIndex("by_v");
        LocalNode.execute("INSERT INTO %s.indexed (k, c, v) VALUES (5, 3000, 'v17')");
        assertEquals(2, LocalNode.execute("SELECT * FROM %s.indexed WHERE v = 'v17'").size());
        LocalNode.execute("UPDATE %s.indexed SET v = 'other' WHERE k = 7 AND c = 17");
        assertEquals(1, LocalNode.execute("SELECT * FROM %s.indexed WHERE v = 'v17'").size());
        assertEquals(1, LocalNode.execute("SELECT * FROM %s.indexed WHERE v = 'other'").size());
        LocalNode.execute("DROP INDEX %s.by_v");
        assertEquals(ROWS + 1, count("indexed"));
    }
}
