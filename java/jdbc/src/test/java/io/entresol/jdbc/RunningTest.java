package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.jdbc.internal.run.Clients;
import io.entresol.jdbc.internal.run.Runs;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.calcite.avatica.AvaticaStatement;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Long-running statements: how they end, and which steps must not take long. */
class RunningTest {
    private static final int ROWS = 300;
    /** Each tries billions of pairs of rows, and reads few. */
    private static final List<String> LONG = List.of(
            "select count(*) from people a, people b, people c, people d",
            "select count(*) from people a join people b on a.age + b.age >= 0 "
                    + "join people c on b.age + c.age >= 0 join people d on a.age + d.age < -1",
            "select max(a.remark) from people a join people b on a.active = b.active "
                    + "join people c on b.active = c.active join people d on c.active = d.active");
    private static final long DEADLINE_SECONDS = 120;

    @TempDir
    static Path folder;

    private static Grid grid;
    private static SqlServer server;

    @BeforeAll
    static void start() throws SQLException {
        grid = new Grid(folder);
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.age = number;
            person.active = true;
            person.name = number % 2 == 0 ? "even" : "odd";
            person.remark = "r";
            grid.cache("people").put("k" + number, person);
        }
        server = SqlServer.start(grid.manager, 0);
    }

    @AfterAll
    static void stop() {
        server.close();
        grid.close();
    }

    private static Connection remote(int port) throws SQLException {
        return DriverManager.getConnection("jdbc:entresol:remote:http://127.0.0.1:" + port);
    }

    private static void await(BooleanSupplier what) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS);
        while (!what.getAsBoolean()) {
            assertTrue(System.nanoTime() < end, "not within " + DEADLINE_SECONDS + " s");
            Thread.onSpinWait();
        }
    }

    private static FutureTask<Object> begun(Statement statement, String sql) {
        FutureTask<Object> run = new FutureTask<>(() -> {
            try (ResultSet rows = statement instanceof PreparedStatement prepared
                    ? prepared.executeQuery() : statement.executeQuery(sql)) {
                return rows.next();
            }
        });
        new Thread(run).start();
        return run;
    }

    private static void ended(FutureTask<Object> run) {
        assertThrows(ExecutionException.class, () -> run.get(DEADLINE_SECONDS, TimeUnit.SECONDS));
    }

    private static long runs(Statement statement) throws SQLException {
        return ((Runs) statement.unwrap(AvaticaStatement.class)).run().number();
    }

    private interface End {
        void of(Connection connection, Statement statement) throws SQLException;
    }

    /** Joins looked at nobody: a core was busy for minutes with what nobody wanted. */
    @Test
    void aRunEndsWithItsCancellationAndWithItsConnection() throws Exception {
        End cancelled = (connection, statement) -> statement.cancel();
        End closed = (connection, statement) -> connection.close();
        for (End end : List.of(cancelled, closed)) {
            for (String sql : LONG) {
                Connection connection = grid.connect();
                Statement statement = end == closed ? connection.createStatement()
                        : connection.prepareStatement(sql);
                FutureTask<Object> run = begun(statement, sql);
                Statement running = statement;
                await(() -> {
                    try {
                        return runs(running) > 0;
                    } catch (SQLException failure) {
                        throw new IllegalStateException(failure);
                    }
                });
                end.of(connection, statement);
                ended(run);
                connection.close();
            }
        }
    }

    /** Nobody told the server, which went on to the end. */
    @Test
    void aRunOfAServerEndsWithItsCancellationAndWithItsConnection() throws Exception {
        End cancelled = (connection, statement) -> statement.cancel();
        End closed = (connection, statement) -> connection.close();
        for (End end : List.of(cancelled, closed)) {
            for (String sql : LONG) {
                Connection connection = remote(server.port());
                Statement statement = end == closed ? connection.createStatement()
                        : connection.prepareStatement(sql);
                FutureTask<Object> run = begun(statement, sql);
                await(() -> server.clients().running() > 0);
                end.of(connection, statement);
                ended(run);
                await(() -> server.clients().running() == 0);
                if (end == cancelled) {
                    // Of that run, and of no later one.
                    assertEquals(List.of(ROWS + ""), Answers.of(connection,
                            "select count(*) from people"));
                    connection.close();
                }
            }
        }
    }

    @Test
    void aRunOfAServerEndsWhenItsClientHasGone() throws Exception {
        // Of a test before, whose client had to ask once more.
        await(() -> server.clients().running() == 0);
        try (Line line = new Line(server.port())) {
            Statement statement = remote(line.port()).createStatement();
            FutureTask<Object> run = begun(statement, LONG.get(0));
            await(() -> server.clients().running() > 0);
            line.cut();
            ended(run);
            await(() -> server.clients().running() == 0);
        }
    }

    @Test
    void connectionsOfTheSystemAreTheOpenOnes() {
        Set<String> open = new HashSet<>();
        Clients.add(List.of("  sl  local_address rem_address   st tx_queue rx_queue",
                "   0: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000",
                "   1: 0100007F:1F90 0100007F:D432 08 00000000:00000000 00:00000000 00000000",
                "   2: 0000000000000000FFFF00000100007F:1F91 0000000000000000FFFF00000100007F:D433"
                        + " 01 00000000:00000000 00:00000000 00000000"), open);
        assertEquals(Set.of("1F90:D431", "1F91:D433"), open);
    }

    /** A join whose condition stood in each branch of an {@code or} tried all pairs. */
    @Test
    void aConditionThatAllBranchesHaveIsThatOfTheJoin() throws SQLException {
        String both = "(a.age = b.age and a.name = 'even' and b.score is null and b.age < 20 "
                + "and a.age < 3) or (a.name = 'odd' and b.age = a.age and b.score is null "
                + "and b.age < 4 and a.age + b.age > 3)";
        try (Connection connection = grid.connect()) {
            for (String[] asked : new String[][] {
                {"select a.age from people a, people b where " + both, "0, 2, 3"},
                {"select a.age from people a join people b on " + both, "0, 2, 3"},
                {"select a.age from people a where exists (select 1 from people b where " + both
                        + ")", "0, 2, 3"},
                {"select a.age from people a left join people b on " + both
                        + " where b.age is not null", "0, 2, 3"}}) {
                String plan = Answers.plan(connection, asked[0]);
                assertFalse(plan.contains("NestedLoop") || plan.contains("Correlate"), plan);
                List<String> found = Answers.of(connection, asked[0] + " order by a.age");
                assertEquals(asked[1], String.join(", ", found), asked[0]);
            }
            // With nulls it is what it was.
            assertEquals(List.of("null", "false", "null"), Answers.of(connection,
                    "select (x and y) or (x and z) from (values (0, cast(null as boolean), true, "
                    + "false), (1, false, cast(null as boolean), true), (2, true, "
                    + "cast(null as boolean), false)) t(n, x, y, z) order by n"));
        }
    }

    /** A line to a server, which can be cut. */
    private static final class Line implements AutoCloseable {
        private final ServerSocket here = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        private final List<Socket> ends = new ArrayList<>();
        private final int port;

        Line(int port) throws IOException {
            this.port = port;
            started(this::accept);
        }

        int port() {
            return here.getLocalPort();
        }

        private interface Work {
            void done() throws IOException;
        }

        private static void started(Work work) {
            Thread thread = new Thread(() -> {
                try {
                    work.done();
                } catch (IOException cut) {
                    // The line is.
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        private void accept() throws IOException {
            while (true) {
                Socket client = here.accept();
                Socket server = new Socket(InetAddress.getLoopbackAddress(), port);
                join(client, server);
            }
        }

        /** What comes just as the line is cut is cut as well. */
        private synchronized void join(Socket client, Socket server) throws IOException {
            ends.addAll(List.of(client, server));
            if (here.isClosed()) {
                cut();
                return;
            }
            started(() -> pass(client, server));
            started(() -> pass(server, client));
        }

        private static void pass(Socket from, Socket to) throws IOException {
            InputStream bytes = from.getInputStream();
            bytes.transferTo(to.getOutputStream());
        }

        synchronized void cut() throws IOException {
            here.close();
            for (Socket each : ends) {
                each.close();
            }
        }

        @Override
        public void close() throws IOException {
            cut();
        }
    }
}
