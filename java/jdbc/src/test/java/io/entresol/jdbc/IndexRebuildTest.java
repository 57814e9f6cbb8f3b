package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.jdbc.internal.index.IndexRebuild;
import io.entresol.jdbc.internal.index.IndexState;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.infinispan.Cache;
import org.infinispan.commons.configuration.Combine;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.IndexStartupMode;
import org.infinispan.context.Flag;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.query.mapper.mapping.SearchMapping;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Indexes in memory over entries that outlive them. */
class IndexRebuildTest {
    private static final int ROWS = 1_000;

    @TempDir
    Path folder;

    /** The program that is killed: says a line once all of its rows are acknowledged. */
    public static void main(String[] arguments) throws Exception {
        Grid grid = new Grid(Path.of(arguments[0]));
        try (Connection connection = grid.connect()) {
            for (int number = 0; number < ROWS; number++) {
                Person person = new Person();
                person.name = "name " + number;
                person.age = number % 10;
                grid.cache("people").put("k" + number, person);
            }
            Answers.change(connection, "delete from people where age = 3");
            Answers.change(connection, "update people set age = 50 where age = 4");
        }
        System.out.println("ready");
        System.in.read();
    }

    @Test
    void killedProcessLosesItsIndexAndNoRowOfAnyQuery() throws Exception {
        Process killed = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp", System.getProperty("java.class.path"), IndexRebuildTest.class.getName(),
                folder.toString()).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try (BufferedReader said =
                new BufferedReader(new InputStreamReader(killed.getInputStream()))) {
            assertEquals("ready", said.lines().filter("ready"::equals).findFirst().orElse(null));
        } finally {
            killed.destroyForcibly().waitFor();
        }
        try (Grid grid = new Grid(folder); Connection connection = grid.connect()) {
            assertEquals(List.of(String.valueOf(ROWS * 9 / 10)),
                    Answers.of(connection, "select count(*) from people"));
            assertEquals(List.of("0, 100", "1, 100", "2, 100", "5, 100", "6, 100", "7, 100",
                    "8, 100", "9, 100", "50, 100"), Answers.of(connection,
                    "select age, count(*) from people group by age order by age"));
            assertEquals(List.of("name 17"), Answers.of(connection,
                    "select name from people where name = 'name 17' and age = 7"));
            assertEquals(1, Answers.change(connection,
                    "insert into people (_key, name) values ('more', 'name 17')"));
            assertEquals(List.of("2"), Answers.of(connection,
                    "select count(*) from people where name = 'name 17'"));
        }
    }

    /** By counts, as times tell of the machine: a handover for each entry halved the rate once. */
    @Test
    void rebuildReadsFlashInBatchesAndHandsNoEntryToAnotherThreadAlone() throws Exception {
        try (Grid grid = new Grid(folder)) {
            ConfigurationBuilder impatient = new ConfigurationBuilder()
                    .read(grid.cache("people").getCacheConfiguration(), Combine.DEFAULT);
            // Infinispan ends an iteration over a store of its own accord after so many
            // milliseconds between two entries: a busy machine had no index once.
            impatient.clustering().remoteTimeout(1);
            grid.manager.defineConfiguration("impatient", impatient.build());
            Map<String, Object> all = new HashMap<>();
            for (int number = 0; number < ROWS; number++) {
                Person person = new Person();
                person.name = "name " + number;
                person.age = number % 10;
                all.put("k" + number, person);
            }
            all.put("of no type that is indexed", "text");
            Cache<String, Object> cache = grid.cache("impatient");
            cache.getAdvancedCache().withFlags(Flag.SKIP_INDEXING).putAll(all);
            long before = grid.statistics("impatient").figure("device_reads");
            Map<String, Integer> asked = new HashMap<>();
            IndexState state = new IndexState(IndexState.Stage.REBUILT);
            new IndexRebuild(cache.getAdvancedCache(), counted(cache, asked), state).run();
            assertTrue(state.isComplete());
            assertEquals(ROWS + 1, state.add(0));
            assertEquals(null, asked.get("getSearchIndexer"), "entries added by Infinispan's own");
            assertEquals(1, asked.get("getMappingSession"));
            long reads = grid.statistics("impatient").figure("device_reads") - before;
            assertTrue(reads <= ROWS / IndexRebuild.BATCH + 8, reads + " reads of the device");
            try (Connection connection = grid.connect()) {
                assertEquals(List.of(String.valueOf(ROWS / 10)),
                        Answers.of(connection, "select count(*) from impatient where age = 3"));
            }
        }
    }

    /** The mapping of a cache, whose methods are counted. */
    private static SearchMapping counted(Cache<?, ?> cache, Map<String, Integer> asked) {
        SearchMapping mapping = ComponentRegistry.componentOf(cache, SearchMapping.class);
        return (SearchMapping) Proxy.newProxyInstance(SearchMapping.class.getClassLoader(),
                new Class<?>[] {SearchMapping.class}, (proxy, method, arguments) -> {
                    synchronized (asked) {
                        asked.merge(method.getName(), 1, Integer::sum);
                    }
                    return method.invoke(mapping, arguments);
                });
    }

    @Test
    void indexOfUnknownStateAnswersNothing() throws Exception {
        try (Grid grid = new Grid(folder, "64MiB", IndexStartupMode.AUTO);
                Connection connection = grid.connect()) {
            SQLException refused = assertThrows(SQLException.class,
                    () -> Answers.of(connection, "select name from people where age = 1"));
            assertTrue(refused.getMessage().contains("startup-mode=\"none\""),
                    refused.getMessage());
            // What needs no index is answered.
            assertEquals(List.of(), Answers.of(connection, "select remark from people"));
        }
    }

    @Test
    void indexThatIsBeingRebuiltSaysHowFarItIs() {
        IndexState state = new IndexState(IndexState.Stage.REBUILT);
        state.begin(500);
        state.add(123);
        IllegalStateException refused = assertThrows(IllegalStateException.class,
                () -> state.requireComplete("people"));
        assertTrue(refused.getMessage().contains("123 of 500"), refused.getMessage());
        state.fail(new IllegalStateException("no schema"));
        refused = assertThrows(IllegalStateException.class,
                () -> state.requireComplete("people"));
        assertTrue(refused.getMessage().contains("no schema"), refused.getMessage());
        state.complete();
        state.requireComplete("people");
    }
}
