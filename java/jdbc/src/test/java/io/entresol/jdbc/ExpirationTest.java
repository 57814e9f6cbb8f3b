package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.infinispan.AdvancedCache;
import org.infinispan.Cache;
import org.infinispan.container.versioning.NumericVersion;
import org.infinispan.metadata.EmbeddedMetadata;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Entries that expire, and the index that holds them. */
class ExpirationTest {
    /** More than memory holds. */
    private static final int ROWS = 300;
    /** The youngest and the richest end. */
    private static final int ENDING = 40;
    private static final long LIFESPAN = 10_000;
    private static final int ATTEMPTS = 10_000;

    @TempDir
    Path folder;

    private Grid grid;
    private Connection connection;

    @BeforeEach
    void load() throws SQLException {
        grid = new Grid(folder);
        connection = grid.connect();
        Cache<String, Person> people = grid.cache("people");
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.name = "name " + number;
            person.age = number;
            person.wealth = (long) ROWS - number;
            people.put("k" + number, person, number < ENDING ? LIFESPAN : -1,
                    TimeUnit.MILLISECONDS);
        }
    }

    @AfterEach
    void stop() throws SQLException {
        connection.close();
        grid.close();
    }

    private List<String> query(String sql) throws SQLException {
        return Answers.of(connection, sql);
    }

    /** The index is told of them, and has it done while nobody waits. */
    private void becomes(int count) throws SQLException {
        List<String> expected = List.of(String.valueOf(count));
        List<String> found = List.of();
        for (int attempt = 0; attempt < ATTEMPTS && !found.equals(expected); attempt++) {
            found = query("select count(*) from people");
        }
        assertEquals(expected, found);
    }

    /** They stayed in it until the cache was started again. */
    @Test
    void anIndexForgetsEntriesThatEndedInMemoryAndOnFlash() throws SQLException {
        becomes(ROWS);
        grid.clock.advance(2 * LIFESPAN);
        grid.reap("people");
        becomes(ROWS - ENDING);
        assertEquals(List.of("name 40, 40"),
                query("select name, age from people order by age limit 1"));
        assertEquals(List.of(ROWS - ENDING + ", 40"),
                query("select max(wealth), min(age) from people"));
        assertEquals(List.of(), query("select _key from people where age < 40"));
    }

    /** It lived for ever. */
    @Test
    void anEntryThatIsUpdatedEndsWhenItWouldHave() throws SQLException {
        AdvancedCache<String, Person> people =
                grid.<String, Person>cache("people").getAdvancedCache();
        Person idle = new Person();
        people.put("idle", idle, -1, TimeUnit.MILLISECONDS, LIFESPAN, TimeUnit.MILLISECONDS);
        NumericVersion first = new NumericVersion(1);
        people.put("versioned", idle, new EmbeddedMetadata.Builder().version(first).build());
        grid.clock.advance(LIFESPAN / 2);
        try (Statement statement = connection.createStatement()) {
            assertEquals(5, statement.executeUpdate("update people set remark = 'seen' "
                    + "where _key in ('k0', 'k1', 'k100', 'idle', 'versioned')"));
        }
        assertNotEquals(first, people.getCacheEntry("versioned").getMetadata().version());
        assertEquals(-1, people.getCacheEntry("k100").getLifespan());
        assertEquals(LIFESPAN, people.getCacheEntry("idle").getMaxIdle());
        grid.clock.advance(LIFESPAN / 2 - 1000);
        assertEquals("seen", people.get("k0").remark);
        assertEquals("seen", people.get("idle").remark);
        grid.clock.advance(1001);
        assertNull(people.get("k0"));
        grid.clock.advance(LIFESPAN);
        assertNull(people.get("idle"));
        assertEquals("seen", people.get("k100").remark);
    }

    @Test
    void anEntryThatNeverEndsDoesNotAfterAnUpdateWhateverTheCachesOwnEndIs() throws SQLException {
        AdvancedCache<String, Person> ending =
                grid.<String, Person>cache("ending").getAdvancedCache();
        ending.put("never", new Person(), -1, TimeUnit.MILLISECONDS, -1, TimeUnit.MILLISECONDS);
        ending.put("ends", new Person());
        try (Statement statement = connection.createStatement()) {
            assertEquals(2, statement.executeUpdate("update ending set remark = 'seen' "
                    + "where _key in ('never', 'ends')"));
        }
        assertEquals(-1, ending.getCacheEntry("never").getLifespan());
        grid.clock.advance(Grid.ENDS_AFTER + 1);
        assertNull(ending.get("ends"));
        assertEquals("seen", ending.get("never").remark);
    }

    @Test
    void anEntryThatIsWrittenAgainIsFoundAgain() throws SQLException {
        grid.clock.advance(2 * LIFESPAN);
        Person person = new Person();
        person.name = "again";
        grid.cache("people").put("k7", person);
        grid.reap("people");
        becomes(ROWS - ENDING + 1);
        assertEquals(List.of("k7"), query("select _key from people where name = 'again'"));
    }

    /** As many were missing as had ended among the first. */
    @Test
    void aLimitIsMetByEntriesThatAreThereBeforeTheIndexForgetsThoseThatEnded()
            throws SQLException {
        grid.clock.advance(2 * LIFESPAN);
        assertEquals(List.of("40, null", "41, null", "42, null"),
                query("select age, remark from people order by age limit 3"));
        assertEquals(List.of("50", "51"), query("select age from (select age, remark from people "
                + "order by age limit 2 offset 50) where remark is null"));
        assertEquals(ROWS - ENDING,
                query("select remark from people order by age limit 1000").size());
        assertEquals(List.of(String.valueOf(ROWS - ENDING)),
                query("select max(wealth) from people"));
    }
}
