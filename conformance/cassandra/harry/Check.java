import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.QueryOptions;
import com.datastax.driver.core.ResultSet;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.SimpleStatement;
import com.datastax.driver.core.SocketOptions;
import harry.core.MetricReporter;
import harry.core.Run;
import harry.corruptor.HideRowCorruptor;
import harry.corruptor.QueryResponseCorruptor.SimpleQueryResponseCorruptor;
import harry.ddl.SchemaGenerators;
import harry.ddl.SchemaSpec;
import harry.generators.Surjections;
import harry.generators.distribution.Distribution;
import harry.model.Model;
import harry.model.OpSelectors;
import harry.model.OpSelectors.OperationKind;
import harry.model.QuiescentChecker;
import harry.model.clock.OffsetClock;
import harry.model.sut.SystemUnderTest;
import harry.operations.Query;
import harry.operations.QueryGenerator;
import harry.runner.DefaultDataTracker;
import harry.visitors.MutatingVisitor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One stage of a check by Harry: the visits FROM to TO of each table, and its model's judgement.
 *
 * <p>Everything follows from the seed, so that a later stage, in another process and perhaps after
 * a kill of the node, knows what the earlier ones wrote. Prints a line for each table:
 * {@code check}, its name, {@code passed} or {@code failed}, and what was found, with tabs between.
 */
public final class Check {
    /** The shapes of Harry's own progression, from simple to all features. */
    private static final String[] SHAPES = {"integers", "integers and text",
        "integers, descending", "integers descending and text", "integers and text descending",
        "integers and text, both descending", "all types"};
    private static final int TABLES_OF_A_SHAPE = 2;
    private static final int PARTITIONS_AT_ONCE = 6;
    private static final int VISITS_OF_A_PARTITION = 60;
    private static final int ROWS_OF_A_PARTITION = 30;
    /** Pages of which each repeats a row of the one before make an answer without end. */
    private static final int MOST_ROWS = 1000;
    private static final int BATCHES_OF_A_VISIT = 3;
    private static final int OPERATIONS_OF_A_BATCH = 3;
    /** Visits of so many timestamps are made in any order before the model is asked. */
    private static final int WINDOW = 20;
    private static final int QUERIES_OF_A_WINDOW = 10;
    private static final int QUERIES_OF_A_PARTITION = 12;
    /** The timestamp of the first visit, in microseconds. */
    private static final long FIRST_TIMESTAMP = 1_000_000;
    private static final int[] PAGES = {1, 3, 7, 5000};

    private final Session session;
    private final Arguments arguments;

    private Check(Session session, Arguments arguments) {
        this.session = session;
        this.arguments = arguments;
    }

    /**
     * What a stage is.
     *
     * @param memtable what the tables are altered to before, or "-"
     * @param corrupt whether a row is taken away at the end, which the model must notice
     */
    private record Arguments(int port, long seed, String keyspace, int from, int to,
            String memtable, boolean corrupt, List<Integer> tables) {
        static Arguments of(String[] words) {
            if (words.length < 8) {
                throw new IllegalArgumentException("expected PORT SEED KEYSPACE FROM TO MEMTABLE"
                        + " check|corrupt TABLE..., found " + String.join(" ", words));
            }
            List<Integer> tables = Arrays.stream(words).skip(7).map(Integer::valueOf).toList();
            return new Arguments(Integer.parseInt(words[0]), Long.parseLong(words[1]), words[2],
                    Integer.parseInt(words[3]), Integer.parseInt(words[4]), words[5],
                    words[6].equals("corrupt"), tables);
        }
    }

    public static void main(String[] words) {
        Arguments arguments = Arguments.of(words);
        Cluster.Builder builder = Cluster.builder().addContactPoint("127.0.0.1")
                .withPort(arguments.port).withoutMetrics().withoutJMXReporting()
                .withSocketOptions(new SocketOptions().setReadTimeoutMillis(60_000))
                .withQueryOptions(new QueryOptions().setDefaultIdempotence(false));
        try (Cluster cluster = builder.build(); Session session = cluster.connect()) {
            new Check(session, arguments).checkTables();
        }
        // Harry's trackers have threads that never end.
        System.exit(0);
    }

    private void checkTables() {
        session.execute("CREATE KEYSPACE IF NOT EXISTS " + arguments.keyspace
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        List<SchemaSpec> schemas = schemas();
        for (int table : arguments.tables) {
            String found = "passed\t";
            try {
                new TableCheck(schemas.get(table), arguments.seed + table).perform();
            } catch (Throwable wrong) {
                found = "failed\t" + told(wrong).replaceAll("\\s+", " ");
            }
            System.out.println("check\t" + table + " " + SHAPES[table / TABLES_OF_A_SHAPE] + "\t"
                    + found);
        }
    }

    /** All tables in the same order each time: Harry's generators number the columns. */
    private List<SchemaSpec> schemas() {
        List<SchemaSpec> schemas = new ArrayList<>();
        for (int shape = 0; shape < SHAPES.length; shape++) {
            Surjections.Surjection<SchemaSpec> generator =
                    SchemaGenerators.PROGRESSIVE_GENERATORS[shape];
            for (int number = 0; number < TABLES_OF_A_SHAPE; number++) {
                schemas.add(schema(generator, schemas.size()));
            }
        }
        return schemas;
    }

    private SchemaSpec schema(Surjections.Surjection<SchemaSpec> generator, int table) {
        Random random = new Random(arguments.seed + table);
        SchemaSpec made;
        do {
            made = generator.inflate(random.nextLong());
        } while (made.pkGenerator.byteSize() != Long.BYTES);
        return new SchemaSpec(arguments.keyspace, "table_" + table, made.partitionKeys,
                made.clusteringKeys, made.regularColumns, made.staticColumns);
    }

    private static String told(Throwable wrong) {
        String cause = wrong.getCause() == null ? "" : ": " + told(wrong.getCause());
        return wrong.getClass().getSimpleName() + " " + wrong.getMessage() + cause;
    }

    /** The visits and questions of one table. */
    private final class TableCheck {
        private final Run run;
        private final OpSelectors.DefaultPdSelector partitions;
        private final Model model;
        private final QueryGenerator.TypedQueryGenerator queries;
        private final Node node;
        private final long seed;
        private long questions;

        TableCheck(SchemaSpec schema, long seed) {
            OpSelectors.Rng stream = new OpSelectors.PCGFast(seed);
            DefaultDataTracker tracker = new DefaultDataTracker();
            tracker.forceLts(arguments.from - 1, arguments.from - 1, null);
            this.seed = seed;
            node = new Node(session, new Random(seed));
            partitions = new OpSelectors.DefaultPdSelector(stream, PARTITIONS_AT_ONCE,
                    VISITS_OF_A_PARTITION);
            run = new Run(stream, new OffsetClock(arguments.to, FIRST_TIMESTAMP), partitions,
                    operations(stream, schema), schema, tracker, node, MetricReporter.NO_OP);
            model = new QuiescentChecker(run);
            queries = new QueryGenerator.TypedQueryGenerator(run);
        }

        void perform() throws Exception {
            node.schemaChange(run.schemaSpec.compile().cql());
            if (arguments.from > 0) {
                validateAll();
            }
            if (!arguments.memtable.equals("-")) {
                node.schemaChange("ALTER TABLE " + run.schemaSpec.keyspace + "."
                        + run.schemaSpec.table + " WITH memtable = '" + arguments.memtable + "'");
            }
            MutatingVisitor visitor = new MutatingVisitor(run);
            for (int from = arguments.from; from < arguments.to; from += WINDOW) {
                visit(visitor, from, Math.min(from + WINDOW, arguments.to));
                validateSome();
            }
            visitor.shutdown();
            validateAll();
            if (arguments.corrupt) {
                expectCorruptionNoticed();
            }
        }

        /** Later timestamps reach the node before earlier ones. */
        private void visit(MutatingVisitor visitor, int from, int to) {
            List<Long> order = new ArrayList<>();
            for (long visit = from; visit < to; visit++) {
                order.add(visit);
            }
            Collections.shuffle(order, new Random(seed + from));
            order.forEach(visitor::visit);
        }

        private void validateSome() {
            for (int number = 0; number < QUERIES_OF_A_WINDOW; number++) {
                questions++;
                long partition = partitions.randomVisitedPd(run.tracker.maxStarted(), questions,
                        run.schemaSpec);
                model.validate(queries.inflate(partitions.maxLtsFor(partition), questions));
            }
        }

        /** Each partition whole, in both orders, and by rows, slices and ranges. */
        private void validateAll() {
            long visited = partitions.maxPosition(run.tracker.maxStarted());
            for (long position = 0; position < visited; position++) {
                long first = partitions.minLtsAt(position);
                long partition = partitions.pd(first, run.schemaSpec);
                for (boolean reversed : new boolean[] {false, true}) {
                    model.validate(Query.selectPartition(run.schemaSpec, partition, reversed));
                }
                for (int number = 0; number < QUERIES_OF_A_PARTITION; number++) {
                    model.validate(queries.inflate(first, number));
                }
            }
        }

        /** The model is worth something only if it sees that a row is gone. */
        private void expectCorruptionNoticed() {
            SimpleQueryResponseCorruptor corruptor = new SimpleQueryResponseCorruptor(
                    run.schemaSpec, run.clock, HideRowCorruptor::new);
            long visited = partitions.maxPosition(run.tracker.maxStarted());
            for (long position = 0; position < visited; position++) {
                Query query = Query.selectPartition(run.schemaSpec,
                        partitions.pd(partitions.minLtsAt(position), run.schemaSpec), false);
                if (corruptor.maybeCorrupt(query, node)) {
                    try {
                        model.validate(query);
                    } catch (Model.ValidationException noticed) {
                        return;
                    }
                    throw new IllegalStateException("a row was deleted, and no check noticed it");
                }
            }
            throw new IllegalStateException("no partition has a row that could be taken away");
        }
    }

    private static OpSelectors.DescriptorSelector operations(OpSelectors.Rng stream,
            SchemaSpec schema) {
        Map<OperationKind, Integer> weights = new EnumMap<>(OperationKind.class);
        weights.put(OperationKind.INSERT, 24);
        weights.put(OperationKind.UPDATE, 24);
        weights.put(OperationKind.INSERT_WITH_STATICS, 12);
        weights.put(OperationKind.UPDATE_WITH_STATICS, 12);
        weights.put(OperationKind.DELETE_ROW, 6);
        weights.put(OperationKind.DELETE_COLUMN, 6);
        weights.put(OperationKind.DELETE_COLUMN_WITH_STATICS, 3);
        weights.put(OperationKind.DELETE_RANGE, 4);
        weights.put(OperationKind.DELETE_SLICE, 4);
        weights.put(OperationKind.DELETE_PARTITION, 1);
        return new OpSelectors.DefaultDescriptorSelector(stream,
                OpSelectors.columnSelectorBuilder().forAll(schema).build(),
                OpSelectors.OperationSelector.weighted(weights),
                new Distribution.ConstantDistribution(BATCHES_OF_A_VISIT),
                new Distribution.ConstantDistribution(OPERATIONS_OF_A_BATCH),
                ROWS_OF_A_PARTITION);
    }

    /** A node behind a driver, as Harry sees it. Pages of reads have sizes in turn. */
    private static final class Node implements SystemUnderTest {
        private final Session session;
        private final AtomicInteger reads;

        Node(Session session, Random random) {
            this.session = session;
            reads = new AtomicInteger(random.nextInt(PAGES.length));
        }

        @Override
        public boolean isShutdown() {
            return session.isClosed();
        }

        @Override
        public void shutdown() {
            session.close();
        }

        @Override
        public Object[][] execute(String statement, ConsistencyLevel level, Object... bindings) {
            SimpleStatement prepared = new SimpleStatement(statement, bindings);
            prepared.setFetchSize(PAGES[reads.getAndIncrement() % PAGES.length]);
            return rows(statement, session.execute(prepared));
        }

        /** At once: a stream of writes is the same each time. */
        @Override
        public CompletableFuture<Object[][]> executeAsync(String statement,
                ConsistencyLevel level, Object... bindings) {
            CompletableFuture<Object[][]> done = new CompletableFuture<>();
            try {
                done.complete(execute(statement, level, bindings));
            } catch (RuntimeException failure) {
                done.completeExceptionally(failure);
            }
            return done;
        }

        private static Object[][] rows(String statement, ResultSet result) {
            List<Object[]> rows = new ArrayList<>();
            for (Row row : result) {
                if (rows.size() == MOST_ROWS) {
                    throw new IllegalStateException("an answer has more than " + MOST_ROWS
                            + " rows, of a partition of " + ROWS_OF_A_PARTITION + ": " + statement);
                }
                Object[] values = new Object[row.getColumnDefinitions().size()];
                for (int column = 0; column < values.length; column++) {
                    values[column] = row.getObject(column);
                }
                rows.add(values);
            }
            return rows.toArray(Object[][]::new);
        }
    }
}
