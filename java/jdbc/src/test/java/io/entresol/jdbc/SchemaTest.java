package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import org.infinispan.AdvancedCache;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.query.Search;
import org.infinispan.query.mapper.mapping.SearchMapping;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Schemas that change while statements run. */
class SchemaTest {
    private static final String FILE = "thing.proto";
    private static final String HEAD = "syntax = \"proto3\"; package things;\n"
            + "/** @Indexed */ message Thing {\n"
            + "/** @Basic(projectable=true, sortable=true) */ optional string name = 1;\n";
    private static final String AGE =
            "/** @Basic(projectable=true, sortable=true) */ optional int32 age = 2;\n";

    @TempDir
    Path folder;

    private Grid grid;
    private BothWays ways;

    @BeforeEach
    void start() throws SQLException {
        ways = new BothWays(folder);
        grid = ways.grid;
        register("}");
        grid.defineThings();
    }

    @AfterEach
    void stop() throws SQLException {
        ways.close();
    }

    private void register(String rest) {
        grid.<String, String>cache("___protobuf_metadata").put(FILE, HEAD + rest);
        assertEquals(null, grid.<String, String>cache("___protobuf_metadata")
                .get(FILE + ".errors"));
    }

    private void updateIndex() {
        AdvancedCache<?, ?> things = grid.cache("things").getAdvancedCache();
        ComponentRegistry.componentOf(things, SearchMapping.class).reload();
        Search.getIndexer(things).run().toCompletableFuture().join();
    }

    /** It was unknown until a restart, also once the index knew it. */
    @Test
    void aFieldThatASchemaHasSinceIsAColumn() throws SQLException {
        for (Connection each : ways.connections) {
            assertEquals(List.of(), Answers.of(each, "select name from things"));
        }
        Connection first = ways.connections.get(0);
        Answers.change(first, "insert into things (_key, name) values ('a', 'Ann')");
        String unknown = assertThrows(SQLException.class,
                () -> Answers.of(first, "select age from things")).getMessage();
        assertTrue(unknown.contains("there is no column `age`"), unknown);
        register(AGE + "}");
        int number = 0;
        for (Connection each : ways.connections) {
            Answers.change(each, "insert into things (_key, name, age) values ('k" + number
                    + "', 'Ben', 3" + number + ")");
            number++;
            // The index has no such field, so that entries are read.
            assertEquals("all entries", Answers.reads(each, "select age from things where age > 5"));
            assertEquals(number + "", Answers.of(each,
                    "select count(*) from things where age >= 30").get(0));
        }
        updateIndex();
        for (Connection each : ways.connections) {
            assertEquals("index", Answers.reads(each, "select age from things where age > 5"));
            assertEquals(List.of("30", "31"), Answers.of(each,
                    "select age from things where age > 5 order by age"));
            assertEquals(List.of("Ann, null"), Answers.of(each,
                    "select name, age from things where age is null"));
        }
    }

    @Test
    void aStatementThatWasPreparedBeforeGoesOnWithItsColumnsOrIsRefused() throws SQLException {
        goesOnOrIsRefused(ways.connections.get(0));
    }

    @Test
    void aRemoteStatementThatWasPreparedBeforeDoesSoToo() throws SQLException {
        goesOnOrIsRefused(ways.connections.get(1));
    }

    /** Plans have places of columns. */
    private void goesOnOrIsRefused(Connection connection) throws SQLException {
        register(AGE + "}");
        updateIndex();
        // Of a table without rows nobody knows the type of the key.
        Answers.change(connection, "insert into things (_key, name) values ('0', 'Ben')");
        try (PreparedStatement read = connection.prepareStatement(
                "select name, age from things where age = ?");
                PreparedStatement change = connection.prepareStatement(
                        "update things set age = age + 1 where name = ?");
                PreparedStatement insert = connection.prepareStatement(
                        "insert into things (_key, name, age) values (?, 'Ann', 1)")) {
            insert.setString(1, "a");
            assertEquals(1, insert.executeUpdate());
            String more = "optional string more = 3; }";
            register(AGE + more);
            Answers.change(connection, "update things set more = 'more'");
            change.setString(1, "Ann");
            assertEquals(1, change.executeUpdate());
            insert.setString(1, "b");
            assertEquals(1, insert.executeUpdate());
            read.setInt(1, 2);
            assertEquals(List.of("Ann, 2"), Answers.of(read.executeQuery()));
            assertEquals(List.of("0, null, more", "a, 2, more", "b, 1, null"), Answers.of(
                    connection, "select _key, age, more from things order by _key"));
            register("optional string between = 4; " + AGE + more);
            for (PreparedStatement stale : List.of(read, change, insert)) {
                String said = assertThrows(SQLException.class, stale::execute).getMessage();
                assertTrue(said.contains("prepare it again"), said);
            }
            assertEquals(List.of("1", "2", "null"), Answers.of(connection,
                    "select age from things order by age"));
        }
    }
}
