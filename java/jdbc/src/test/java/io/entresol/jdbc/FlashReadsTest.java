package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.StoreStatistics;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.IndexStartupMode;
import org.infinispan.context.Flag;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How often flash is read for a query; the rows are loaded once and read after a new start. */
class FlashReadsTest {
    private static final int ROWS = Integer.getInteger("entresol.sql.rows", 20_000);
    /** Rows of one age. */
    private static final int HITS = 100;

    private static final String CAPACITY = 256 + ROWS / 1_000 + "MiB";

    @TempDir
    static Path folder;

    private Grid grid;
    private Connection connection;

    @BeforeAll
    static void load() {
        try (Grid loaded = new Grid(folder, CAPACITY, IndexStartupMode.NONE)) {
            loadPeople(loaded.cache("people"));
            loadPurchases(loaded.cache("purchases"));
        }
    }

    @BeforeEach
    void start() throws Exception {
        grid = new Grid(folder, CAPACITY, IndexStartupMode.NONE);
        grid.cache("people");
        grid.cache("purchases");
        connection = grid.connect();
    }

    @AfterEach
    void stop() throws Exception {
        connection.close();
        grid.close();
    }

    @Test
    void queryReadsTheEntriesThatItFindsAndProjectionsReadNone() throws Exception {
        counted("select count(*) from people", 1, 0);
        counted("select * from people where age = 7", HITS, HITS);
        counted("select _key, remark from people where age = 8", HITS, HITS);
        counted("select _key, name, age from people where age = 8", HITS, 0);
        counted("select _key, name from people where age between 20 and 24 order by score desc "
                + "nulls last limit 7 offset 2", 7, 0);
        counted("select name from people where age = 12 order by _key", HITS, 0);
        counted("select remark from people where age = 9 limit 10", 10, 10);
        counted("select remark from people where age between 20 and 24 "
                + "order by name limit 10 offset 3", 10, 10);
        counted("select name, age from people where age = 7", HITS, 0);
        counted("select _key from people where age = 11", HITS, 0);
        counted("select name, age from people", ROWS, 0);
        counted("select upper(name), age * 2, age from people where score * 2 < 50", 100, 0);
        counted("select age, age from people where age = 13", HITS, 0);
        counted("select 1 from people where age = 14", HITS, 0);
        counted("select sum(score * 2), max(name || '!') from people", 1, 0);
        assertEquals("index", Answers.reads(connection, "select upper(name) from people"));
        counted("select age, count(*), min(score), max(name) from people "
                + "group by age", ROWS / HITS, 0);
        counted("select count(*) from people where age < 50", 1, 0);
        counted("select name from people where age > 10 "
                + "order by name desc nulls last limit 5", 5, 0);
        counted("select remark from people where _key in ('k5', 'k17')", 2, 2);
    }

    @Test
    void aggregatesOfWhatTheIndexKeepsReadNothingAndExtremesOneEntryAtMost() throws Exception {
        counted("select min(age), max(name), count(*), count(score) from people", 1, 0);
        counted("select max(wealth) from people", 1, 1);
        counted("select min(wealth), max(age) from people where age > 3", 1, 1);
        counted("select sum(age), avg(score), count(active) from people", 1, 0);
        counted("select count(distinct name), sum(distinct age) from people where age < 9", 1, 0);
        counted("select distinct age from people where score > 10", ROWS / HITS, 0);
        counted("select age, sum(score), max(name) from people group by age "
                + "having count(*) > 1 and max(score) > 0", ROWS / HITS, 0);
        counted("select mood, \"address.city\", count(*) from people where age = 5 "
                + "group by mood, \"address.city\"", HITS, 0);
        assertEquals(List.of((ROWS - 1) + ", 3, 0, 199"), Answers.of(connection,
                "select max(wealth), min(wealth), min(age), max(age) from people "
                + "where wealth > 2"));
        assertEquals(List.of("null, null, 0"), Answers.of(connection,
                "select min(wealth), max(name), count(*) from people where age = 1000"));
        assertTrue(Answers.plan(connection, "select max(wealth) from people")
                .contains("order by p.wealth desc limit 1"));
    }

    @Test
    void joinReadsTheEntriesThatItsLeftAsksForAndEachOnce() throws Exception {
        String byKey = "select b.price, p.remark from purchases b join people p "
                + "on b.buyer = p._key where b.price ";
        counted(byKey + "= 3", 10, 10);
        counted(byKey + "between 4 and 13", 100, 100);
        counted("select b.price, p.remark from purchases b left join people p "
                + "on b.buyer = p.name and p.score >= 0 where b.price between 100 and 109", 100,
                100);
        // Whichever side an outer join keeps.
        counted("select b.price, p.remark from people p right join purchases b "
                + "on b.buyer = p._key where b.price between 25 and 34", 100, 100);
        counted("select count(p.remark), count(b.price) from people p right join "
                + "(select * from purchases where price < 5) b on b.buyer = p.name", 1, 0);
        // All have one buyer; and a thousand, of which some go with the batch after.
        counted(byKey + "= 50", 10, 1);
        counted("select count(p.remark) from purchases b join people p on b.buyer = p._key "
                + "where b.price between 150 and 269", 1, 1_200);
        // More values of a field than an index is asked for at once.
        counted("select count(p.remark) from purchases b join people p "
                + "on cast(substring(b._key from 2) as bigint) = p.wealth "
                + "where b.price between 200 and 279", 1, 800);
        counted("select remark from people where _key in "
                + "(select buyer from purchases where price = 14)", 10, 10);
        counted("select q.remark from purchases b join people p on b.buyer = p.name "
                + "join people q on p.\"address.city\" = q._key where b.price = 110", 10, 10);
        counted("select p.name, b.price from people p join purchases b on b.buyer = p.name "
                + "where p.age = 7", 3, 0);
    }

    @Test
    void batchesOfAJoinFindWhatBatchesBeforeThemRead() throws Exception {
        // More rows than one batch has, of three hundred keys.
        String sql = "select count(*), count(p.remark) from purchases b left join people p "
                + "on 'k' || cast(b.price as varchar) = p._key";
        assertTrue(Answers.plan(connection, sql).contains("LookupJoin"));
        counted(sql, 1, 300);
        assertEquals(List.of("3000, 3000"), Answers.of(connection, sql));
    }

    @Test
    void joinThatWouldReadAGoodPartByKeyReadsAllInOrderInstead() throws Exception {
        String sql = "select count(q.remark) from people p join people q "
                + "on p.\"address.city\" = q._key where p.age >= ?";
        assertTrue(Answers.plan(connection, sql).contains("LookupJoin"));
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setInt(1, 0);
            assertTrue(gets(statement, ROWS) <= ROWS / 4);
            statement.setInt(1, ROWS / HITS - 1);
            assertTrue(gets(statement, HITS) <= HITS);
        }
    }

    /** Reads by key of a query that counts so many. */
    private long gets(PreparedStatement counting, int count) throws Exception {
        long before = grid.statistics("people").gets();
        try (ResultSet rows = counting.executeQuery()) {
            assertEquals(List.of(String.valueOf(count)), Answers.of(rows));
        }
        return grid.statistics("people").gets() - before;
    }

    private void counted(String sql, int rows, int reads) throws Exception {
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
    private static void loadPeople(Cache<String, Person> cache) {
        Cache<String, Person> plain = cache.getAdvancedCache()
                .withFlags(Flag.SKIP_INDEXING, Flag.IGNORE_RETURN_VALUES, Flag.SKIP_CACHE_LOAD);
        Map<String, Person> batch = new HashMap<>();
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.name = "name " + number;
            // Neighbours on flash are not hits of one query.
            person.age = number % (ROWS / HITS);
            person.score = number / 4.0;
            // The key of another.
            person.address = new Person.Address();
            person.address.city = "k" + (number + ROWS / 2) % ROWS;
            person.wealth = (long) number;
            person.remark = ("remark " + number + " ").repeat(40);
            batch.put("k" + number, person);
            if (batch.size() == 500 || number == ROWS - 1) {
                plain.putAll(batch);
                batch.clear();
            }
        }
    }

    /** Ten of each price: buyers by their key, the same one, and buyers by name. */
    private static void loadPurchases(Cache<String, Purchase> cache) {
        Map<String, Purchase> all = new HashMap<>();
        for (int number = 0; number < 3_000; number++) {
            Purchase purchase = new Purchase();
            purchase.price = number / 10;
            int buyer = 3 * number + 1;
            purchase.buyer = purchase.price == 50 ? "k2"
                    : (purchase.price / 50 == 2 ? "name " : "k") + buyer;
            all.put("p" + number, purchase);
        }
        cache.putAll(all);
    }
}
