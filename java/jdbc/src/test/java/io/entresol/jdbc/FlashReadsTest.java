package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.StoreStatistics;
import java.nio.file.Path;
import java.sql.Connection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.IndexStartupMode;
import org.infinispan.context.Flag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How often flash is read for a query; the rows are loaded once and read after a new start. */
class FlashReadsTest {
    private static final int ROWS = Integer.getInteger("entresol.sql.rows", 20_000);
    /** Rows of one age. */
    private static final int HITS = 100;

    @TempDir
    Path folder;

    @Test
    void queryReadsTheEntriesThatItFindsAndProjectionsReadNone() throws Exception {
        String capacity = 256 + ROWS / 1_000 + "MiB";
        try (Grid grid = new Grid(folder, capacity, IndexStartupMode.NONE)) {
            load(grid.cache("people"));
        }
        try (Grid grid = new Grid(folder, capacity, IndexStartupMode.NONE)) {
            grid.cache("people");
            try (Connection connection = grid.connect()) {
                counted(grid, connection, "select count(*) from people", 1, 0);
                counted(grid, connection, "select * from people where age = 7", HITS, HITS);
                counted(grid, connection, "select _key, remark from people where age = 8", HITS,
                        HITS);
                counted(grid, connection, "select remark from people where age = 9 limit 10", 10,
                        10);
                counted(grid, connection, "select remark from people where age between 20 and 24 "
                        + "order by name limit 10 offset 3", 10, 10);
                counted(grid, connection, "select name, age from people where age = 7", HITS, 0);
                counted(grid, connection, "select _key from people where age = 11", HITS, 0);
                counted(grid, connection, "select name, age from people", ROWS, 0);
                counted(grid, connection, "select age, count(*), min(score), max(name) from people "
                        + "group by age", ROWS / HITS, 0);
                counted(grid, connection, "select count(*) from people where age < 50", 1, 0);
                counted(grid, connection, "select name from people where age > 10 "
                        + "order by name desc nulls last limit 5", 5, 0);
                counted(grid, connection, "select remark from people where _key in ('k5', 'k17')",
                        2, 2);
            }
        }
    }

    private void counted(Grid grid, Connection connection, String sql, int rows, int reads)
            throws Exception {
        StoreStatistics before = grid.statistics("people");
        List<String> found = Answers.of(connection, sql);
        StoreStatistics after = grid.statistics("people");
        assertEquals(rows, found.size(), sql);
        assertEquals(reads, after.gets() - before.gets(), () -> "gets of: " + sql);
        long flash = after.flashHits() - before.flashHits();
        assertEquals(reads, flash, () -> "gets from flash of: " + sql);
        long device = after.figure("device_reads") - before.figure("device_reads");
        assertTrue(device <= reads, () ->  device + " reads of the device for: " + sql);
    }

    /** Without its index, which the next start makes anew anyway. */
    private static void load(Cache<String, Person> cache) {
        Cache<String, Person> plain = cache.getAdvancedCache()
                .withFlags(Flag.SKIP_INDEXING, Flag.IGNORE_RETURN_VALUES, Flag.SKIP_CACHE_LOAD);
        Map<String, Person> batch = new HashMap<>();
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.name = "name " + number;
            // Neighbours on flash are not hits of one query.
            person.age = number % (ROWS / HITS);
            person.score = number / 4.0;
            person.remark = ("remark " + number + " ").repeat(40);
            batch.put("k" + number, person);
            if (batch.size() == 500 || number == ROWS - 1) {
                plain.putAll(batch);
                batch.clear();
            }
        }
    }
}
