package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Calendar;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TimeZone;
import org.infinispan.Cache;
import org.infinispan.commands.write.PutKeyValueCommand;
import org.infinispan.commons.CacheException;
import org.infinispan.context.InvocationContext;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.AsyncInterceptorChain;
import org.infinispan.interceptors.DDAsyncInterceptor;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Statements over caches that a program uses as well. */
class SqlTest {
    @TempDir
    static Path folder;

    private static Grid grid;
    private Connection connection;

    @BeforeAll
    static void start() {
        grid = new Grid(folder);
    }

    @AfterAll
    static void stop() {
        grid.close();
    }

    @BeforeEach
    void connect() throws SQLException {
        connection = grid.connect();
    }

    @AfterEach
    void empty() throws SQLException {
        connection.close();
        for (String cache : List.of("people", "purchases", "both")) {
            grid.cache(cache).clear();
        }
    }

    private static Person person(String name, Integer age) {
        Person person = new Person();
        person.name = name;
        person.age = age;
        return person;
    }

    private List<String> query(String sql) throws SQLException {
        return Answers.of(connection, sql);
    }

    @Test
    void whatAProgramPutIsReadWithItsTypesAndNulls() throws SQLException {
        Person ada = person("Ada", 36);
        ada.wealth = 1L << 40;
        ada.score = 0.25;
        ada.active = true;
        ada.mood = Person.Mood.CROSS;
        ada.born = 86_400_000L;
        ada.payload = new byte[] {1, -1};
        ada.address = new Person.Address();
        ada.address.city = "London";
        ada.tags = List.of("a", "b");
        ada.story = "Of Engines";
        grid.<String, Person>cache("people").put("ada", ada);
        grid.<String, Person>cache("people").put("nobody", new Person());
        try (ResultSet row = connection.createStatement()
                .executeQuery("select * from people where _key = 'ada'")) {
            assertTrue(row.next());
            assertEquals("Ada", row.getString("name"));
            assertEquals(36, row.getInt("age"));
            assertEquals(1L << 40, row.getLong("wealth"));
            assertEquals(0.25, row.getDouble("score"));
            assertTrue(row.getBoolean("active"));
            assertEquals("CROSS", row.getString("mood"));
            assertEquals(new Timestamp(86_400_000L).toInstant(),
                    row.getTimestamp("born", Calendar.getInstance(
                            TimeZone.getTimeZone("UTC"))).toInstant());
            assertArrayEquals(new byte[] {1, -1}, row.getBytes("payload"));
            assertEquals("London", row.getString("address.city"));
            assertNull(row.getString("address.street"));
            assertEquals("[\"a\",\"b\"]", row.getString("tags"));
            assertEquals("Of Engines", row.getString("story"));
        }
        try (ResultSet row = connection.createStatement()
                .executeQuery("select * from people where name is null")) {
            assertTrue(row.next());
            assertEquals("nobody", row.getString(1));
            for (int column = 2; column <= row.getMetaData().getColumnCount(); column++) {
                assertNull(row.getObject(column), row.getMetaData().getColumnName(column));
            }
        }
    }

    @Test
    void whatSqlInsertsAProgramReads() throws SQLException {
        String insert = "insert into people (_key, name, age, wealth, score, active, mood, born, "
                + "payload, \"address.city\", \"address.street\", story) "
                + "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            statement.setString(1, "bob");
            statement.setString(2, "Böb");
            statement.setInt(3, -5);
            statement.setLong(4, Long.MIN_VALUE);
            statement.setDouble(5, 2.5);
            statement.setBoolean(6, false);
            statement.setString(7, "GLAD");
            statement.setTimestamp(8, Timestamp.from(Instant.ofEpochMilli(123_456)),
                    Calendar.getInstance(TimeZone.getTimeZone("UTC")));
            statement.setBytes(9, new byte[] {9, 8});
            statement.setString(10, "Ulm");
            statement.setNull(11, Types.VARCHAR);
            statement.setString(12, "none");
            assertEquals(1, statement.executeUpdate());
        }
        Person bob = grid.<String, Person>cache("people").get("bob");
        assertEquals("Böb", bob.name);
        assertEquals(-5, bob.age);
        assertEquals(Long.MIN_VALUE, bob.wealth);
        assertEquals(2.5, bob.score);
        assertEquals(false, bob.active);
        assertEquals(Person.Mood.GLAD, bob.mood);
        assertEquals(123_456, bob.born);
        assertArrayEquals(new byte[] {9, 8}, bob.payload);
        assertEquals("Ulm", bob.address.city);
        assertNull(bob.address.street);
        assertEquals("none", bob.story);
        assertNull(bob.remark);
    }

    @Test
    void updatesChangeTheirColumnsAndLeaveTheRest() throws SQLException {
        Cache<String, Person> people = grid.cache("people");
        Person kept = person("Eve", 1);
        kept.tags = List.of("x");
        kept.address = new Person.Address();
        kept.address.city = "Bonn";
        kept.address.street = "Ring";
        people.put("eve", kept);
        people.put("max", person("Max", 2));
        assertEquals(2, Answers.change(connection, "update people set age = age + 10"));
        assertEquals(1, Answers.change(connection, "update people set name = null, "
                + "\"address.city\" = 'Köln', mood = 'CALM' where age = 11"));
        Person eve = people.get("eve");
        assertNull(eve.name);
        assertEquals(11, eve.age);
        assertEquals("Köln", eve.address.city);
        assertEquals("Ring", eve.address.street);
        assertEquals(List.of("x"), eve.tags);
        assertEquals(Person.Mood.CALM, eve.mood);
        assertEquals(List.of("max, 12"), query("select _key, age from people where age = 12"));
        assertEquals(1, Answers.change(connection, "delete from people where name is null"));
        assertEquals(1, people.size());
        assertEquals(0, Answers.change(connection, "delete from people where _key = 'eve'"));
    }

    @Test
    void batchesOfPreparedStatementsInsertEachRow() throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(
                "insert into purchases (_key, buyer, price) values (?, ?, ?)")) {
            for (int number = 0; number < 20; number++) {
                statement.setString(1, "p" + number);
                statement.setString(2, "buyer " + number % 3);
                statement.setInt(3, number);
                statement.addBatch();
            }
            assertEquals(20, statement.executeBatch().length);
        }
        assertEquals(List.of("buyer 0, 7, 63", "buyer 1, 7, 70", "buyer 2, 6, 57"),
                query("select buyer, count(*), sum(price) from purchases group by buyer "
                        + "order by buyer"));
    }

    @Test
    void anInsertOfWhatItsOwnTableHasAddsEachRowOnce() throws SQLException {
        for (int number = 0; number < 2_000; number++) {
            grid.<String, Person>cache("people").put("k" + number, person("Ann", number));
        }
        assertEquals(2_000, Answers.change(connection, "insert into people (_key, name, age) "
                + "select _key || '+', name, age from people"));
        assertEquals(List.of("4000, 2000"),
                query("select count(*), count(distinct age) from people"));
    }

    @Test
    void tablesJoinAcrossCaches() throws SQLException {
        grid.<String, Person>cache("people").put("1", person("Ann", 20));
        grid.<String, Person>cache("people").put("2", person("Ben", 30));
        for (int number = 0; number < 4; number++) {
            Purchase purchase = new Purchase();
            purchase.buyer = number % 2 == 0 ? "Ann" : "Carl";
            purchase.price = number;
            grid.<String, Purchase>cache("purchases").put("p" + number, purchase);
        }
        assertEquals(List.of("Ann, 2, 2", "Ben, 0, null"), query(
                "select p.name, count(b.price), sum(b.price) from people p left join purchases b "
                        + "on b.buyer = p.name group by p.name order by p.name"));
        assertEquals(List.of("Ben"), query("select name from people where name not in "
                + "(select buyer from purchases where buyer is not null)"));
    }

    /** The first column that was read of a table was taken for its key, whichever it was. */
    @Test
    void joinsWithFieldsThatManyRowsShareHaveARowForEachOfThem() throws SQLException {
        for (int number = 0; number < 6; number++) {
            grid.<String, Person>cache("people").put("k" + number, person("Ann", number));
            Purchase purchase = new Purchase();
            purchase.buyer = number < 4 ? "Ann" : "Ben";
            grid.<String, Purchase>cache("purchases").put("p" + number, purchase);
        }
        assertEquals(6 * 4, query("select p._key from people p join purchases b "
                + "on p.name = b.buyer").size());
        assertEquals(List.of("24"), query("select count(*) from people p join purchases b "
                + "on p.name = b.buyer"));
        assertEquals(List.of("Ann, 4", "Ben, 2"), query("select buyer, count(*) from purchases "
                + "group by buyer order by buyer"));
        assertEquals(List.of("Ann"), query("select distinct name from people"));
    }

    @Test
    void eachTypeOfACacheIsATableOfItsOwn() throws SQLException {
        Purchase purchase = new Purchase();
        purchase.price = 3;
        grid.cache("both").put("a", person("Ann", 20));
        grid.cache("both").put("b", purchase);
        assertEquals(List.of("a, Ann"), query("select _key, name from both_Person"));
        assertEquals(List.of("b, 3"), query("select _key, price from both_Purchase"));
        assertEquals(List.of("1"), query("select count(*) from both_Purchase"));
    }

    @Test
    void parametersOfAnyTypeReachTheIndex() throws SQLException {
        for (int number = 0; number < 50; number++) {
            Person person = person("name " + number, number);
            person.score = number / 2.0;
            person.born = number * 1_000L;
            grid.<String, Person>cache("people").put("k" + number, person);
        }
        String sql = "select name from people where age between ? and ? and score < ? "
                + "and name <> ? and born >= ? order by name limit ? offset ?";
        assertEquals("index", Answers.reads(connection, sql.replace("limit ? offset ?", "")));
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int twice = 0; twice < 2; twice++) {
                statement.setInt(1, 10 + twice);
                statement.setInt(2, 30);
                statement.setDouble(3, 10.0);
                statement.setString(4, "name 12");
                statement.setTimestamp(5, new Timestamp(0));
                statement.setInt(6, 3);
                statement.setInt(7, 1);
                try (ResultSet rows = statement.executeQuery()) {
                    assertEquals(twice == 0 ? List.of("name 11", "name 13", "name 14")
                            : List.of("name 13", "name 14", "name 15"), Answers.of(rows));
                }
            }
            statement.setNull(4, Types.VARCHAR);
            try (ResultSet rows = statement.executeQuery()) {
                assertEquals(List.of(), Answers.of(rows));
            }
        }
    }

    @Test
    void keysThatAreNumbersAreColumnsOfNumbers() throws SQLException {
        grid.<Long, Person>cache("numbered").put(7L, person("Seven", 7));
        assertEquals(List.of("7, Seven"),
                query("select _key, name from numbered where _key = 7"));
        assertEquals(List.of("7"), query("select _key from numbered where name = 'Seven'"));
        assertEquals(1, Answers.change(connection,
                "insert into numbered (_key, name) values (8, 'Eight')"));
        assertEquals("Eight", grid.<Long, Person>cache("numbered").get(8L).name);
    }

    /** Such a key was looked up by its JSON, which no key can be made of. */
    @Test
    void keysThatAreMessagesAreComparedByTheirJson() throws SQLException {
        Purchase key = new Purchase();
        key.buyer = "Ann";
        key.price = 3;
        grid.<Purchase, Person>cache("documents").put(key, person("Three", 3));
        grid.<Purchase, Person>cache("documents").put(new Purchase(), person("None", 0));
        String json = query("select _key from documents where age = 3").get(0);
        assertTrue(json.contains("Ann"), json);
        assertEquals(List.of("Three"),
                query("select name from documents where _key = '" + json + "'"));
        assertEquals(List.of("Three"),
                query("select name from documents where _key in ('{}', '" + json + "')"));
        try (PreparedStatement statement = connection.prepareStatement(
                "select name from documents where _key = ?")) {
            statement.setString(1, json);
            try (ResultSet rows = statement.executeQuery()) {
                assertEquals(List.of("Three"), Answers.of(rows));
            }
        }
    }

    @Test
    void metadataListTablesAndColumns() throws SQLException {
        Set<String> tables = new HashSet<>();
        try (ResultSet found = connection.getMetaData()
                .getTables(null, "caches", "p%", new String[] {"TABLE"})) {
            while (found.next()) {
                tables.add(found.getString("TABLE_NAME"));
            }
        }
        assertEquals(Set.of("people", "purchases"), tables);
        List<String> columns = new ArrayList<>();
        try (ResultSet found = connection.getMetaData()
                .getColumns(null, "caches", "purchases", null)) {
            while (found.next()) {
                columns.add(found.getString("COLUMN_NAME") + " " + found.getInt("DATA_TYPE") + " "
                        + found.getInt("NULLABLE"));
            }
        }
        assertEquals(List.of("_key " + Types.VARCHAR + " 0", "buyer " + Types.VARCHAR + " 1",
                "price " + Types.INTEGER + " 1"), columns);
    }

    @Test
    void mistakesSayWhatThereIs() throws SQLException {
        refused("select * from persons", "there is no table `persons`", "people");
        refused("select nam from people", "there is no column `nam`", "name");
        refused("update people set nam = 'x'", "nam", "name");
        refused("update people set _key = 'x'", "key of the entries");
        Answers.change(connection, "insert into people (_key, age) values ('a', 1)");
        refused("insert into people (_key, age) values ('a', 2)", "key a is there already");
        refused("insert into people (_key, mood) values ('b', 'SAD')", "mood", "GLAD", "SAD");
        refused("insert into people (_key, tags) values ('b', '[]')", "tags", "read only");
        refused("update people set tags = null", "tags", "read only");
        refused("insert into people (age) values (3)", "_key");
        refused("select * frm people", "frm");
        assertEquals(List.of("a, 1"), query("select _key, age from people"));
        assertThrows(SQLException.class, () -> new Driver().connect("jdbc:entresol:x=y",
                new Properties()));
        assertNull(new Driver().connect("jdbc:other:", new Properties()));
    }

    @Test
    void aConfigurationThatIsNoneIsRefusedAsOtherMistakesAre() throws Exception {
        Path file = Files.writeString(folder.resolve("none.xml"), "<infinispan><nothing/>");
        SQLException refused = assertThrows(SQLException.class, () -> new Driver().connect(
                "jdbc:entresol:config=" + file, new Properties()));
        assertTrue(refused.getMessage().contains("none.xml cannot be read"), refused.getMessage());
    }

    @Test
    void numbersThatJsonLacksArePrintedAsTexts() throws Exception {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        try (var statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(
                        "select cast('NaN' as double) as wealth, 1.5 as score")) {
            new Printer(new PrintStream(said, true, StandardCharsets.UTF_8), Printer.Format.JSON)
                    .print(rows);
        }
        assertEquals("{\"wealth\":\"NaN\",\"score\":1.5}",
                said.toString(StandardCharsets.UTF_8).strip());
    }

    @Test
    void aChangeThatFailsWhileItsRowsAreMadeCountsThoseThatAreChanged() throws SQLException {
        refused("insert into people (_key, mood) values ('a', 'GLAD'), ('b', 'SAD')", "SAD",
                "1 other row");
        assertEquals(List.of("a, GLAD"), query("select _key, mood from people"));
    }

    @Test
    void aChangeThatTheCacheFailsCountsThoseThatItMade() throws SQLException {
        AsyncInterceptorChain chain = ComponentRegistry.componentOf(grid.cache("purchases"),
                AsyncInterceptorChain.class);
        chain.addInterceptor(new SecondPutFails(), 0);
        try {
            refused("insert into purchases (_key, price) values ('a', 1), ('b', 2), ('c', 3)",
                    "no room for the second", "2 other rows");
        } finally {
            chain.removeInterceptor(SecondPutFails.class);
        }
        assertEquals(List.of("1", "3"), query("select price from purchases order by price"));
    }

    /** A cache that fails one of the changes. */
    static final class SecondPutFails extends DDAsyncInterceptor {
        private int puts;

        @Override
        public Object visitPutKeyValueCommand(InvocationContext context,
                PutKeyValueCommand command) {
            if (++puts == 2) {
                throw new CacheException("no room for the second");
            }
            return invokeNext(context, command);
        }
    }

    private void refused(String sql, String... words) {
        SQLException refused = assertThrows(SQLException.class, () -> {
            try (var statement = connection.createStatement()) {
                statement.execute(sql);
            }
        });
        for (String word : words) {
            assertTrue(refused.getMessage().contains(word), refused.getMessage());
        }
    }
}
