package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.KilledStores;
import io.entresol.jdbc.internal.rows.CacheRows;
import io.entresol.jdbc.internal.rows.Container;
import io.entresol.jdbc.internal.rows.Owners;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.infinispan.Cache;
import org.infinispan.context.Flag;
import org.infinispan.query.Search;
import org.infinispan.query.core.stats.IndexInfo;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/** Statements where each entry is on two of three nodes. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ClusterTest {
    private static final int NODES = 3;
    private static final int ROWS = 300;
    private static final int QUERIES = 60;
    private static final int JOINS = 30;
    /** Rounds of statements after the node is gone. */
    private static final int ROUNDS = 8;

    private final List<Grid> nodes = new ArrayList<>();
    private Path folder;
    private List<Integer> ports;

    /** A node that is killed: says a line once it has its part of the entries. */
    public static void main(String[] arguments) throws Exception {
        List<Integer> ports = new ArrayList<>();
        for (int number = 1; number < arguments.length; number++) {
            ports.add(Integer.parseInt(arguments[number]));
        }
        try {
            Grid.member(Path.of(arguments[0]), NODES, ports);
        } catch (RuntimeException failure) {
            failure.printStackTrace(System.out);
            // Threads of the node are there already, and would keep the process.
            Runtime.getRuntime().halt(1);
        }
        System.out.println("ready");
        System.in.read();
    }

    @BeforeAll
    void start(@TempDir Path here) throws IOException {
        folder = here;
        ports = freePorts(NODES + 1);
        for (int number = 0; number < NODES; number++) {
            nodes.add(Grid.member(folder, number, ports));
        }
    }

    @AfterAll
    void stop() throws IOException {
        nodes.forEach(Grid::close);
        KilledStores.removeBuffers(folder);
    }

    @BeforeEach
    void empty() {
        nodes.get(0).cache("people").clear();
        nodes.get(0).cache("purchases").clear();
    }

    /** Ports below those that the system gives to connections: a node that starts late has its. */
    private static List<Integer> freePorts(int count) {
        List<Integer> ports = new ArrayList<>();
        int port = (int) (12_000 + ProcessHandle.current().pid() * 7 % 18_000);
        for (; ports.size() < count; port++) {
            // A node listens on the port and, for its neighbour's failure detection, 100 above.
            if (isFree(port) && isFree(port + 100)) {
                ports.add(port);
            }
        }
        return ports;
    }

    private static boolean isFree(int port) {
        try {
            new ServerSocket(port, 1, InetAddress.getLoopbackAddress()).close();
            return true;
        } catch (IOException taken) {
            return false;
        }
    }

    @Test
    void randomQueriesOfAnyNodeAnswerAsAnotherDatabaseDoes() throws Exception {
        Random random = new Random(DifferentialTest.SEED);
        try (Connection other = DriverManager.getConnection("jdbc:h2:mem:")) {
            DifferentialTest.fill(random, nodes.get(0).cache("people"), other);
            for (int number = 0; number < QUERIES; number++) {
                try (Connection ours = nodes.get(number % NODES).connect()) {
                    DifferentialTest.compare(random, ours, other, number);
                }
            }
        }
    }

    /** What they are asked is told them by names that Calcite's own functions have, too. */
    @Test
    void ownersComputeOfTextsAndDecimalsWhatOneNodeDoes() throws Exception {
        String wide = "\uff21";
        String face = "\ud83d\ude00";
        String[] texts = {"a", wide, face, "one\ntwo"};
        Cache<String, Person> people = nodes.get(0).cache("people");
        for (int number = 0; number < 40; number++) {
            Person person = new Person();
            person.name = texts[number % texts.length];
            person.remark = person.name;
            person.wealth = Long.MAX_VALUE;
            people.put("k" + number, person);
        }
        String sql = "select min(remark || '!'), max(remark || '!'), max(remark), min(name), "
                + "count(*) filter (where remark like 'one_two'), "
                + "count(*) filter (where remark > '" + wide + "'), "
                + "sum(cast(wealth as decimal(19))), "
                + "avg(cast(wealth as decimal(19))) from people";
        for (Grid node : nodes) {
            try (Connection connection = node.connect()) {
                assertTrue(Answers.plan(connection, sql).contains("totals=["));
                assertEquals(List.of("a!, " + face + "!, " + face + ", a, 10, 10, "
                        + "368934881474191032280, 9223372036854775807.0000000000"),
                        Answers.of(connection, sql));
                assertEquals(List.of("a", "one\ntwo", wide, face), Answers.of(connection,
                        "select distinct name from people order by name"));
                assertEquals(List.of(face), Answers.of(connection,
                        "select name from people order by name desc limit 1"));
            }
        }
    }

    @Test
    void randomJoinsOfAnyNodeAnswerAsAnotherDatabaseDoes() throws Exception {
        Random random = new Random(DifferentialTest.SEED);
        try (Connection other = DriverManager.getConnection("jdbc:h2:mem:")) {
            DifferentialTest.fill(random, nodes.get(0).cache("people"), other);
            Joins.fill(random, nodes.get(1).cache("purchases"), other);
            int lookups = 0;
            for (int number = 0; number < JOINS; number++) {
                try (Connection ours = nodes.get(number % NODES).connect()) {
                    String plan = DifferentialTest.compare(Joins.query(random), false, ours,
                            other, number);
                    lookups += plan.contains("LookupJoin") ? 1 : 0;
                }
            }
            assertTrue(lookups > JOINS / 4, lookups + " of " + JOINS);
        }
    }

    @Test
    void keysAloneAndExtremesReadNoEntriesAndJoinsThoseThatTheyAskFor() throws Exception {
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.name = "name " + number;
            person.age = number % 10;
            nodes.get(0).cache("people").put("k" + number, person);
            Purchase purchase = new Purchase();
            purchase.buyer = "k" + number;
            purchase.price = number;
            nodes.get(0).cache("purchases").put("p" + number, purchase);
        }
        // Nothing is left in memory; what is read then is read of flash.
        nodes.forEach(node -> node.cache("people").getAdvancedCache().getDataContainer().clear());
        for (Grid node : nodes) {
            try (Connection connection = node.connect()) {
                long before = reads();
                assertEquals(ROWS / 10,
                        Answers.of(connection, "select _key from people where age = 7").size());
                assertEquals(2, Answers.of(connection, "select _key from people "
                        + "where name in ('name 0', 'name 1', 'name 2') limit 2").size());
                assertEquals(List.of("0, name 99"), Answers.of(connection,
                        "select min(age), max(name) from people"));
                assertEquals(before, reads());
            }
        }
        try (Connection connection = nodes.get(1).connect()) {
            long before = reads();
            assertEquals(20, Answers.of(connection, "select b.price, p.name, p.remark "
                    + "from purchases b join people p on b.buyer = p._key where b.price < 20")
                    .size());
            assertEquals(20, reads() - before);
        }
    }

    @Test
    void totalsAreComputedByOwnersAndKeysBesideFieldsReadNoEntries() throws Exception {
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.name = "name " + number;
            person.age = number % 10;
            person.wealth = number % 3 == 0 ? null : (long) number;
            person.score = number / 2.0;
            nodes.get(0).cache("people").put("k" + number, person);
        }
        nodes.forEach(node -> node.cache("people").getAdvancedCache().getDataContainer().clear());
        counted("select sum(age), avg(score), count(name) from people", 1, NODES, 0);
        counted("select age, sum(score), min(name), count(*) from people group by age", 10,
                NODES * 10, 0);
        counted("select age, count(distinct name) from people where age < 5 group by age "
                + "having count(*) > 1 order by age desc limit 3", 3, ROWS / 2, 0);
        counted("select age, sum(score), grouping(age) from people group by rollup(age)", 11,
                NODES * 10, 0);
        counted("select name, max(age) from people group by name", ROWS, ROWS, 0);
        counted("select sum(wealth), min(wealth) from people", 1, NODES, 0);
        counted("select age, max(remark) from people where age in (3, 4) group by age", 2,
                NODES * 2, ROWS / 5);
        counted("select _key, name, age from people", ROWS, ROWS, 0);
        counted("select age, _key from people where age = 4 order by name desc nulls last "
                + "limit 5 offset 2", 5, NODES * 7, 0);
        counted("select name from people where age = 4 limit 3", 3, NODES * 3, 0);
        counted("select max(name) from (select name from people where age = 4 "
                + "order by wealth nulls last limit 3)", 1, 0, 0);
    }

    /** All entries came to the node that was asked. */
    @Test
    void totalsOfExpressionsAndOfRowsThatNoIndexFindsAreComputedByOwners() throws Exception {
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.name = "name " + number;
            person.age = number % 10;
            person.wealth = (long) number;
            person.score = number / 2.0;
            person.active = number % 2 == 0;
            nodes.get(0).cache("people").put("k" + number, person);
        }
        counted("select sum(age * score), avg(age + score), count(age + 1) from people", 1,
                NODES, 0);
        counted("select age + 1, max(score - age), min(upper(name)) from people group by age + 1",
                10, NODES * 10, 0);
        counted("select sum(case when active then age else 0 end) from people", 1, NODES, 0);
        counted("select sum(cast(wealth as decimal(19)) * 1.5) from people", 1, NODES, 0);
        counted("select count(*) filter (where score > 10), sum(age) filter (where active) "
                + "from people", 1, NODES, 0);
        counted("select count(*), sum(age) from people where upper(name) like '%9'", 1, NODES, 0);
        counted("select age, sum(score * 2) from people where score > age and age < 5 "
                + "group by age having count(*) > 1", 5, NODES * 5, 0);
        counted("select count(distinct age / 2) from people", 1, NODES * 5, 0);
        counted("select sum(100 / age) from people where age + score > 1 and age * 2 > 1", 1,
                NODES, 0);
        counted("select sum(wealth * 3) from people where age = 4", 1, NODES, ROWS / 10);
        try (Connection connection = nodes.get(2).connect()) {
            String sql = "select sum(wealth * cast(? as bigint) + cast(? as bigint)), count(*) "
                    + "from people where upper(name) >= ?";
            assertTrue(Answers.plan(connection, sql).contains("totals"));
            assertEquals(Answers.of(connection, "select sum(w), count(*) from (select wealth * 2 "
                    + "+ 7 w, name from people order by name limit 1000) where name >= 'name 5'"),
                    Answers.of(connection, sql, 2, 7L, "NAME 5"));
            String said = assertThrows(SQLException.class, () -> Answers.of(connection,
                    "select sum(10 / (age - 3)) from people")).getMessage();
            assertTrue(said.contains("by zero"), said);
            said = assertThrows(SQLException.class, () -> Answers.of(connection,
                    "select sum(wealth + 9000000000000000000) from people")).getMessage();
            assertTrue(said.contains("a sum of an expression is beyond BIGINT"), said);
            // What differs from node to node, or from one moment to the next, stays here.
            assertTrue(!Answers.plan(connection, "select sum(rand_integer(age + 1)) from people")
                    .contains("totals"));
            assertTrue(!Answers.plan(connection, "select count(*) from people where "
                    + "born + interval '1' day < current_timestamp").contains("totals"));
        }
    }

    /** Rows of the answer, most rows that come from other nodes, and entries that are read. */
    private void counted(String sql, int rows, int carried, long read) throws Exception {
        try (Connection connection = nodes.get(1).connect()) {
            CacheRows people = Container.of(nodes.get(1).manager, Map.of())
                    .rows("people", "sample.Person");
            nodes.forEach(node ->
                    node.cache("people").getAdvancedCache().getDataContainer().clear());
            long reads = reads();
            long before = people.carried();
            assertEquals(rows, Answers.of(connection, sql).size(), sql);
            assertEquals(read, reads() - reads, sql);
            assertTrue(people.carried() - before <= carried,
                    people.carried() - before + " rows for " + sql);
        }
    }

    @Test
    void anAnswerThatIsTooLongForOneMessageComesInParts() throws Exception {
        int rows = 9_000;
        Map<String, Purchase> all = new HashMap<>();
        for (int number = 0; number < rows; number++) {
            Purchase purchase = new Purchase();
            purchase.buyer = "long ".repeat(600) + number;
            purchase.price = number;
            all.put("p" + number, purchase);
        }
        nodes.get(0).cache("purchases").putAll(all);
        try (Connection connection = nodes.get(2).connect()) {
            Set<String> found = new HashSet<>(Answers.of(connection,
                    "select _key, price, buyer from purchases"));
            assertEquals(rows, found.size());
            assertTrue(found.contains("p17, 17, " + all.get("p17").buyer));
        }
    }

    /** Entries of people that all nodes have read of their stores. */
    private long reads() {
        return nodes.stream().mapToLong(node -> node.statistics("people").gets()).sum();
    }

    @Test
    void changesThroughAnyNodeAreWhatEachOtherReads() throws Exception {
        for (int number = 0; number < ROWS; number++) {
            int by = number % NODES;
            try (Connection connection = nodes.get(by).connect()) {
                String key = "k" + number;
                assertEquals(1, Answers.change(connection, "insert into people (_key, name, age) "
                        + "values ('" + key + "', 'name " + number + "', " + number % 10 + ")"));
            }
        }
        try (Connection first = nodes.get(0).connect();
                Connection second = nodes.get(1).connect();
                Connection third = nodes.get(2).connect()) {
            assertEquals(ROWS / 10, Answers.change(second,
                    "update people set age = age + 100, remark = 'old' where age = 3"));
            assertEquals(List.of("k13, old", "k3, old"), Answers.of(third,
                    "select _key, remark from people where age = 103 and _key in ('k3', 'k13') "
                    + "order by _key"));
            assertEquals(ROWS / 10, Answers.change(third, "delete from people where age = 4"));
            assertEquals(List.of(String.valueOf(ROWS * 9 / 10)),
                    Answers.of(first, "select count(*) from people"));
            assertEquals(ROWS * 9 / 10, Answers.change(first, "insert into purchases "
                    + "(_key, buyer, price) select _key, name, age from people"));
            assertEquals(List.of("5, 30, 150", "103, 30, 3090"), Answers.of(second,
                    "select p.age, count(*), sum(b.price) from people p join purchases b "
                    + "on b.buyer = p.name where p.age in (5, 103) group by p.age "
                    + "order by p.age"));
        }
    }

    @Test
    void aQuestionIsAskedAgainWhereOwnersChangedMeanwhile() throws Exception {
        for (int number = 0; number < ROWS; number++) {
            Purchase purchase = new Purchase();
            purchase.buyer = "buyer " + number;
            purchase.price = number % 10;
            nodes.get(0).cache("purchases").put("p" + number, purchase);
        }
        Cache<?, ?> leaving = nodes.get(2).cache("purchases");
        Owners owners = new Owners(nodes.get(0).cache("purchases").getAdvancedCache());
        int[] asked = {0};
        assertEquals("whole", owners.ask(() -> {
            if (asked[0]++ == 0) {
                leaving.stop();
                return "of owners that were";
            }
            return "whole";
        }));
        assertTrue(asked[0] > 1);
        leaving.start();
        // The node has its part of the index again.
        for (int number = NODES - 1; number >= 0; number--) {
            try (Connection connection = nodes.get(number).connect()) {
                assertEquals(List.of("300, 1350"), Answers.of(connection,
                        "select count(*), sum(price) from purchases"));
                assertEquals(1, Answers.change(connection,
                        "delete from purchases where _key = 'p" + number * 10 + "'"));
                assertEquals(1, Answers.change(connection, "insert into purchases (_key, buyer, "
                        + "price) values ('p" + number * 10 + "', 'again', 0)"));
            }
        }
    }

    @Test
    void aNodeThatComesBackHasItsOwnPartAloneInItsIndex() throws Exception {
        for (int number = 0; number < ROWS; number++) {
            nodes.get(0).cache("purchases").put("p" + number, new Purchase());
        }
        // As another member, which owns other segments than its store has.
        nodes.get(2).close();
        nodes.set(2, Grid.member(folder, 2, ports));
        Cache<?, ?> cache = nodes.get(2).cache("purchases");
        long indexed = indexed(cache);
        assertEquals(cache.getAdvancedCache().withFlags(Flag.CACHE_MODE_LOCAL).size(), indexed);
        assertTrue(indexed > 0 && indexed < ROWS, indexed + " of " + ROWS);
    }

    /** Entries that one node's own index has. */
    private static long indexed(Cache<?, ?> cache) throws Exception {
        return Search.getSearchStatistics(cache).getIndexStatistics().computeIndexInfos()
                .toCompletableFuture().get().values().stream().mapToLong(IndexInfo::count).sum();
    }

    @Test
    void entriesThatEndLeaveTheIndexesOfAllThatOwnThem() throws Exception {
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.age = number;
            nodes.get(0).cache("people").put("k" + number, person, number % 3 == 0 ? 10 : -1,
                    TimeUnit.SECONDS);
        }
        for (Grid node : nodes) {
            // Half of them are on flash only.
            node.cache("people").getAdvancedCache().getDataContainer().clear();
            for (int number = 0; number < ROWS; number += 2) {
                node.cache("people").getAdvancedCache().withFlags(Flag.CACHE_MODE_LOCAL)
                        .get("k" + number);
            }
            node.clock.advance(20_000);
        }
        nodes.forEach(node -> node.reap("people"));
        long indexed = 0;
        for (Grid node : nodes) {
            try (Connection connection = node.connect()) {
                assertEquals(List.of("200, 1"), Answers.of(connection,
                        "select count(*), min(age) from people"));
            }
            indexed += indexed(node.cache("people"));
        }
        assertEquals(2 * 200, indexed);
    }

    @Test
    void whileANodeJoinsAndIsKilledAnswersAreWhole() throws Exception {
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.name = "name " + number;
            person.age = number % 10;
            person.wealth = 0L;
            nodes.get(0).cache("people").put("k" + number, person);
        }
        Process killed = launch();
        try (Connection connection = nodes.get(0).connect()) {
            Asked asked = new Asked(connection);
            CompletableFuture<String> ready = CompletableFuture.supplyAsync(() -> said(killed));
            while (!ready.isDone()) {
                asked.all();
            }
            assertEquals("ready", ready.get(), "the node did not start");
            assertEquals(List.of(), asked.refused);
            killed.destroyForcibly();
            while (nodes.get(0).manager.getMembers().size() > NODES) {
                asked.all();
            }
            for (int round = 0; round < ROUNDS; round++) {
                asked.all();
            }
            // What a change met is told; it was made or not.
            long wealth = Long.parseLong(Answers.of(connection,
                    "select wealth from people where _key = 'k0'").get(0));
            assertTrue(asked.added <= wealth && wealth <= asked.added + asked.refused.size(),
                    asked.added + " of " + wealth + ", " + asked.refused);
            assertTrue(asked.refused.size() <= 2, asked.refused.toString());
        } finally {
            killed.destroyForcibly().waitFor();
        }
    }

    /** A node more, in a JVM of its own. */
    private Process launch() throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m",
                "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true",
                "-cp", System.getProperty("java.class.path"), ClusterTest.class.getName(),
                folder.toString()));
        ports.forEach(port -> command.add(port.toString()));
        return new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.DISCARD).start();
    }

    /** What the node says until it has its part or ends. */
    private static String said(Process node) {
        List<String> said = new ArrayList<>();
        BufferedReader lines = new BufferedReader(
                new InputStreamReader(node.getInputStream(), StandardCharsets.UTF_8));
        lines.lines().peek(said::add).anyMatch("ready"::equals);
        return String.join("\n", said);
    }

    /** Statements of each way to read a cache; what is answered must be whole. */
    private static final class Asked {
        private final Connection connection;
        private final List<String> refused = new ArrayList<>();
        private int added;

        Asked(Connection connection) {
            this.connection = connection;
        }

        void all() throws SQLException {
            expect(List.of(String.valueOf(ROWS)), "select count(*) from people");
            expect(hits(7, false), "select name from people where age = 7");
            expect(hits(8, true), "select name, remark from people where age = 8");
            expect(keys(), "select _key from people");
            expect(List.of("name 1, null", "name 250, null"),
                    "select name, remark from people where _key in ('k1', 'k250')");
            expect(List.of("1350, 10"), "select sum(age), count(distinct age) from people");
            expect(List.of("3, 30, 0", "4, 30, 0"), "select age, count(*), sum(wealth) "
                    + "from people where age in (3, 4) group by age");
            expect(List.of("name 114, k114"),
                    "select name, _key from people where age = 4 order by name limit 1 offset 1");
            expect(List.of("90"), "select count(*) from people where remark is null and age < 3");
            expect(List.of("30"), "select count(*) from people p join people q "
                    + "on p.name = q.name where p.age = 2");
            try {
                Answers.change(connection,
                        "update people set wealth = wealth + 1 where _key = 'k0'");
                added++;
            } catch (SQLException failure) {
                refused.add(failure.getMessage());
            }
        }

        private void expect(List<String> expected, String sql) throws SQLException {
            List<String> found = new ArrayList<>(Answers.of(connection, sql));
            Collections.sort(found);
            List<String> sorted = new ArrayList<>(expected);
            Collections.sort(sorted);
            assertEquals(sorted, found, sql);
        }

        private static List<String> hits(int age, boolean remark) {
            List<String> names = new ArrayList<>();
            for (int number = age; number < ROWS; number += 10) {
                names.add("name " + number + (remark ? ", null" : ""));
            }
            return names;
        }

        private static List<String> keys() {
            List<String> keys = new ArrayList<>();
            for (int number = 0; number < ROWS; number++) {
                keys.add("k" + number);
            }
            return keys;
        }
    }
}
