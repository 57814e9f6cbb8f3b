package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The metadata of a connection about tables and about itself, in process and remotely. */
class MetaDataTest {
    @TempDir
    static Path folder;

    private static Grid grid;
    private static SqlServer server;
    private static List<Connection> connections;

    @BeforeAll
    static void start() throws SQLException {
        grid = new Grid(folder);
        Person person = new Person();
        person.age = 1;
        grid.cache("people").put("one", person);
        grid.cache("people").put("none", new Person());
        Driver.register("told", grid.manager);
        server = SqlServer.start(grid.manager, 0);
        connections = new ArrayList<>();
        for (String url : List.of("container=told", "remote:http://127.0.0.1:" + server.port())) {
            connections.add(DriverManager.getConnection(Driver.PREFIX + url));
        }
    }

    @AfterAll
    static void stop() throws SQLException {
        for (Connection each : connections) {
            each.close();
        }
        server.close();
        Driver.unregister("told");
        grid.close();
    }

    /** There was none. */
    @Test
    void thePrimaryKeyOfATableIsItsKey() throws SQLException {
        for (Connection connection : connections) {
            DatabaseMetaData meta = connection.getMetaData();
            for (String schema : new String[] {"caches", null}) {
                try (ResultSet keys = meta.getPrimaryKeys(null, schema, "people")) {
                    assertTrue(keys.next(), schema + " of " + connection.getMetaData().getURL());
                    assertEquals("caches", keys.getString("TABLE_SCHEM"));
                    assertEquals("people", keys.getString("TABLE_NAME"));
                    assertEquals("_key", keys.getString("COLUMN_NAME"));
                    assertEquals(1, keys.getShort("KEY_SEQ"));
                    assertEquals("TABLE_CAT", keys.getMetaData().getColumnLabel(1));
                    assertEquals("PK_NAME", keys.getMetaData().getColumnLabel(6));
                    assertFalse(keys.next());
                }
            }
            for (String[] none : new String[][] {{"caches", "nothing"}, {"metadata", "people"},
                {"caches", null}, {"caches", "p%"}}) {
                try (ResultSet keys = meta.getPrimaryKeys(null, none[0], none[1])) {
                    assertFalse(keys.next());
                }
            }
        }
    }

    /** It was said that they come at the end. */
    @Test
    void nullsAreSortedAsItIsTold() throws SQLException {
        for (Connection connection : connections) {
            DatabaseMetaData meta = connection.getMetaData();
            assertTrue(meta.nullsAreSortedHigh());
            assertFalse(meta.nullsAreSortedLow());
            assertFalse(meta.nullsAreSortedAtStart());
            assertFalse(meta.nullsAreSortedAtEnd());
            for (String column : List.of("age", "age + 0")) {
                assertEquals(List.of("one", "none"),
                        Answers.of(connection, "select _key from people order by " + column));
                assertEquals(List.of("none", "one"), Answers.of(connection,
                        "select _key from people order by " + column + " desc"));
            }
        }
    }

    @Test
    void nullsAreSortedAsAUrlHasItAndSoItIsTold() throws SQLException {
        for (String[] asked : new String[][] {{"LOW", "none", "one"}, {"FIRST", "none", "none"},
            {"LAST", "one", "one"}, {"HIGH", "one", "none"}}) {
            try (Connection connection = DriverManager.getConnection(
                    "jdbc:entresol:container=told;defaultNullCollation=" + asked[0])) {
                DatabaseMetaData meta = connection.getMetaData();
                assertEquals(asked[0].equals("LOW"), meta.nullsAreSortedLow());
                assertEquals(asked[0].equals("FIRST"), meta.nullsAreSortedAtStart());
                assertEquals(asked[0].equals("LAST"), meta.nullsAreSortedAtEnd());
                assertEquals(asked[0].equals("HIGH"), meta.nullsAreSortedHigh());
                assertEquals(asked[1], Answers.of(connection,
                        "select _key from people order by age").get(0));
                assertEquals(asked[2], Answers.of(connection,
                        "select _key from people order by age desc").get(0));
            }
        }
    }

    /** Tools that ask refused to write. */
    @Test
    void tablesCanBeWritten() throws SQLException {
        for (Connection connection : connections) {
            assertFalse(connection.getMetaData().isReadOnly());
        }
    }

    @Test
    void tablesOfWhatThereIsCanBeAsked() throws SQLException {
        assertTrue(Answers.of(connections.get(0), "select \"tableName\" from \"metadata\".tables")
                .contains("people"));
    }

    /** Remotely names were said to be capitals, so that tools asked for tables that are not there. */
    @Test
    void namesAreToldAsTheyAreWritten() throws SQLException {
        for (Connection connection : connections) {
            DatabaseMetaData meta = connection.getMetaData();
            assertTrue(meta.storesMixedCaseIdentifiers());
            assertTrue(meta.storesMixedCaseQuotedIdentifiers());
            assertFalse(meta.storesUpperCaseIdentifiers());
            assertFalse(meta.storesLowerCaseIdentifiers());
            assertFalse(meta.storesUpperCaseQuotedIdentifiers());
            assertFalse(meta.supportsMixedCaseIdentifiers());
            assertFalse(meta.supportsMixedCaseQuotedIdentifiers());
            assertEquals("\"", meta.getIdentifierQuoteString());
            assertEquals("Entresol", meta.getDatabaseProductName());
            assertEquals("Entresol JDBC Driver", meta.getDriverName());
            assertEquals(List.of("1"), Answers.of(connection,
                    "select AGE from PEOPLE where \"AGE\" is not null"));
        }
    }
}
