package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.infinispan.commands.read.GetAllCommand;
import org.infinispan.context.InvocationContext;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.AsyncInterceptorChain;
import org.infinispan.interceptors.DDAsyncInterceptor;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachemanagerlistener.annotation.CacheStarted;
import org.infinispan.notifications.cachemanagerlistener.event.CacheStartedEvent;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How statements and connections fail, stop and end. */
class ConnectionTest {
    private static final int ROWS = 300;

    @TempDir
    static Path folder;

    private static Grid grid;

    @BeforeAll
    static void load() {
        grid = new Grid(folder);
        for (int number = 0; number < ROWS; number++) {
            Person person = new Person();
            person.age = number;
            person.remark = "remark";
            grid.cache("people").put("k" + number, person);
        }
        Driver.register("connections", grid.manager);
    }

    @AfterAll
    static void stop() {
        Driver.unregister("connections");
        grid.close();
    }

    /** Who catches SQLExceptions missed it. */
    @Test
    void aMistakeThatIsMetBetweenTwoRowsIsAnSqlException() throws SQLException {
        try (SqlServer server = SqlServer.start(grid.manager, 0)) {
            for (String url : List.of("jdbc:entresol:container=connections",
                    "jdbc:entresol:remote:http://127.0.0.1:" + server.port())) {
                try (Connection connection = DriverManager.getConnection(url);
                        Statement statement = connection.createStatement();
                        ResultSet rows = statement.executeQuery(
                                "select 10 / (250 - age), remark from people order by age")) {
                    for (int row = 0; row < 100; row++) {
                        assertTrue(rows.next());
                    }
                    SQLException failed = assertThrows(SQLException.class, () -> {
                        while (rows.next()) {
                            assertEquals("remark", rows.getString(2));
                        }
                    });
                    assertTrue(failed.getMessage().contains("/ by zero"), failed.getMessage());
                }
            }
        }
    }

    @Test
    void cellsThatAreArraysAreReadAsResultsOfTheirOwn() throws SQLException {
        try (Connection connection = grid.connect();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("select array[4, 5]")) {
            assertTrue(row.next());
            try (ResultSet cells = row.getArray(1).getResultSet()) {
                assertTrue(cells.next() && cells.next());
                assertEquals(5, cells.getInt(1));
                assertFalse(cells.next());
            }
        }
    }

    @Test
    void aConnectionThatIsClosedClosesItsStatementsAndWhatTheyRead() throws SQLException {
        Connection connection = grid.connect();
        Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("select remark from people");
        Statement idle = connection.createStatement();
        assertTrue(rows.next());
        connection.close();
        assertTrue(rows.isClosed());
        assertTrue(statement.isClosed());
        assertTrue(idle.isClosed());
    }

    @Test
    void aStatementThatIsCancelledStopsReading() throws SQLException {
        AsyncInterceptorChain chain = ComponentRegistry.componentOf(grid.cache("people"),
                AsyncInterceptorChain.class);
        try (Connection connection = grid.connect();
                Statement statement = connection.createStatement()) {
            chain.addInterceptor(new Cancels(statement), 0);
            SQLException cancelled = assertThrows(SQLException.class, () -> statement
                    .executeQuery("select count(remark) from people where age >= 0").next());
            assertTrue(cancelled.getMessage().contains("cancelled"), cancelled.getMessage());
        } finally {
            chain.removeInterceptor(Cancels.class);
        }
    }

    /** Cancels a statement while it reads entries. */
    static final class Cancels extends DDAsyncInterceptor {
        private final Statement statement;

        Cancels(Statement statement) {
            this.statement = statement;
        }

        @Override
        public Object visitGetAllCommand(InvocationContext context, GetAllCommand command)
                throws SQLException {
            statement.cancel();
            return invokeNext(context, command);
        }
    }

    @Test
    void aCacheThatStartsKeepsNoStatementOnAnotherWaiting() throws Exception {
        Meanwhile meanwhile = new Meanwhile(Thread.currentThread());
        grid.manager.addListener(meanwhile);
        try (Connection connection = grid.connect()) {
            assertEquals(List.of("0"), Answers.of(connection, "select count(*) from numbered"));
            assertEquals(List.of(String.valueOf(ROWS)), meanwhile.asked.get());
            assertFalse(meanwhile.waited, "a statement waited for the start of another's cache");
        } finally {
            grid.manager.removeListener(meanwhile);
        }
    }

    /** Asks one cache while another starts. */
    @Listener
    public static final class Meanwhile {
        private final Thread starting;
        private final FutureTask<List<String>> asked = new FutureTask<>(() -> {
            try (Connection connection = grid.connect()) {
                return Answers.of(connection, "select count(*) from people");
            }
        });
        private boolean waited;

        Meanwhile(Thread starting) {
            this.starting = starting;
        }

        /** Returns when it is answered, or waits for what the starting thread holds. */
        @CacheStarted
        public void started(CacheStartedEvent event) {
            Thread asking = new Thread(asked);
            asking.start();
            while (asking.isAlive() && !waited) {
                ThreadInfo now =
                        ManagementFactory.getThreadMXBean().getThreadInfo(asking.getId());
                waited = now != null && now.getLockOwnerId() == starting.getId();
            }
        }
    }
}
