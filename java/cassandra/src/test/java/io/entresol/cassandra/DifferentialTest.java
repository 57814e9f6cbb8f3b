package io.entresol.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import org.apache.cassandra.cql3.UntypedResultSet;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.ColumnFamilyStore.FlushReason;
import org.apache.cassandra.db.ReadExecutionController;
import org.apache.cassandra.db.SinglePartitionReadCommand;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.utils.FBUtilities;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * One stream of statements goes to a table of Cassandra's own and to one on flash, which must answer
 * alike. {@code entresol.seed}, printed, chooses them; {@code entresol.statements} says how many.
 */
class DifferentialTest {
    private static final long SEED = Long.getLong("entresol.seed", 42);
    private static final int STATEMENTS = Integer.getInteger("entresol.statements", 6_000);
    private static final int COMPARED_EVERY = 20;
    private static final int FLUSHED_EVERY = 500;
    private static final int KEYS = 8;
    private static final int PARTITION_TOLD = 60;

    @BeforeAll
    static void startNode() {
        LocalNode.start();
    }

    @Test
    void everyQueryIsAnsweredAlike() {
        System.out.println("entresol.seed=" + SEED + " entresol.statements=" + STATEMENTS);
        Pair pair = new Pair("wide", Statements.WIDE);
        play(pair, new Statements(new Random(SEED)), STATEMENTS);
    }

    @Test
    void tablesWithoutClusteringsAreAnsweredAlike() {
        Pair pair = new Pair("narrow", Statements.NARROW);
        play(pair, new Statements(new Random(SEED + 1)), STATEMENTS / 4);
    }

    @Test
    void countersAreAnsweredAlike() {
        Pair pair = new Pair("counts", Statements.COUNTERS);
        play(pair, new Statements(new Random(SEED + 2)), STATEMENTS / 4);
    }

    private static void play(Pair pair, Statements statements, int count) {
        for (int turn = 0; turn < count; turn++) {
            pair.execute(statements.change(pair.schema));
            if (turn % COMPARED_EVERY == 0) {
                pair.compare(statements.query(pair.schema));
                // Counters carry moments of their node.
                if (!pair.schema.isCounted()) {
                    pair.comparePartition(statements.random.nextInt(KEYS));
                }
            }
            if (turn % FLUSHED_EVERY == FLUSHED_EVERY - 1) {
                pair.stock().forceBlockingFlush(FlushReason.UNIT_TESTS);
            }
        }
        for (int key = 0; key < KEYS && !pair.schema.isCounted(); key++) {
            pair.comparePartition(key);
        }
        pair.compare("SELECT * FROM %t");
    }

    /** The two tables. */
    private static final class Pair {
        final Statements.Schema schema;
        private final String name;
        private final List<String> history = new ArrayList<>();

        Pair(String name, Statements.Schema schema) {
            this.name = name;
            this.schema = schema;
            LocalNode.execute(text(schema.create(), name + "_stock"));
            LocalNode.execute(text(schema.create(), name + "_ours") + " AND memtable = 'entresol'");
        }

        void execute(String statement) {
            history.add(statement);
            TestClock.hold(() -> {
                LocalNode.execute(text(statement, name + "_stock"));
                LocalNode.execute(text(statement, name + "_ours"));
            });
        }

        void compare(String query) {
            assertEquals(rows(query, "_stock"), rows(query, "_ours"), () -> query + told(history, COMPARED_EVERY));
        }

        /** Compares what repair compares: deletions too. */
        void comparePartition(int key) {
            assertEquals(partition(stock(), key), partition(LocalNode.table(name + "_ours"), key),
                    () -> "partition " + key + told(history.stream().filter(statement ->
                            statement.contains("k = " + key) || statement.contains("(" + key + ", "))
                            .toList(), PARTITION_TOLD));
        }

        ColumnFamilyStore stock() {
            return LocalNode.table(name + "_stock");
        }

        private String told(List<String> statements, int count) {
            int from = Math.max(0, statements.size() - count);
            return " after, among " + history.size() + " statements of seed " + SEED + ",\n"
                    + String.join("\n", statements.subList(from, statements.size()));
        }

        private String rows(String query, String which) {
            UntypedResultSet result = LocalNode.execute(text(query, name + which));
            return java.util.stream.StreamSupport.stream(result.spliterator(), false)
                    .map(row -> row.getColumns().stream()
                            .map(column -> column.name + "=" + (row.has(column.name.toString())
                                    ? column.type.getString(row.getBytes(column.name.toString()))
                                    : "null"))
                            .collect(Collectors.joining(" ")))
                    .collect(Collectors.joining("\n"));
        }

        private static String partition(ColumnFamilyStore cfs, int key) {
            SinglePartitionReadCommand read = SinglePartitionReadCommand.fullPartitionRead(
                    cfs.metadata(), FBUtilities.nowInSeconds(),
                    cfs.decorateKey(Int32Type.instance.decompose(key)));
            StringBuilder text = new StringBuilder();
            try (ReadExecutionController controller = read.executionController();
                    UnfilteredPartitionIterator rows = read.executeLocally(controller)) {
                while (rows.hasNext()) {
                    try (UnfilteredRowIterator partition = rows.next()) {
                        text.append(partition.partitionLevelDeletion()).append('\n')
                                .append(partition.staticRow().toString(cfs.metadata(), true));
                        partition.forEachRemaining(row -> text.append('\n')
                                .append(row.toString(cfs.metadata(), true)));
                    }
                }
            }
            // An empty clustering has two names.
            return text.toString().replace("]: EMPTY |", "]:  |");
        }

        private static String text(String statement, String table) {
            return statement.replace("%t", LocalNode.KEYSPACE + "." + table);
        }
    }
}
