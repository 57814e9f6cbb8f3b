package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.io.StringReader;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.calcite.avatica.AvaticaConnection;
import org.apache.calcite.avatica.Meta;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import sqlline.SqlLine;

/** The caches of one process from programs and tools that have only a URL. */
class RemoteTest {
    @TempDir
    static Path folder;

    private static Grid grid;
    private static SqlServer server;
    private static String remote;

    @BeforeAll
    static void start() throws Exception {
        grid = new Grid(folder);
        Driver.register("tested", grid.manager);
        server = SqlServer.start(grid.manager, 0);
        remote = "jdbc:entresol:remote:http://127.0.0.1:" + server.port();
        try (Connection connection = grid.connect()) {
            Answers.change(connection, "insert into people (_key, name, age, payload) values "
                    + "('a', 'Ann', 20, x'01'), ('b', 'Ben', null, null)");
        }
    }

    @AfterAll
    static void stop() {
        server.close();
        Driver.unregister("tested");
        grid.close();
    }

    @Test
    void aPlainProgramReadsAndWritesOverHttp() throws Exception {
        try (Connection connection = DriverManager.getConnection(remote)) {
            assertEquals(List.of("a, Ann, 20, 01", "b, Ben, null, null"), Answers.of(connection,
                    "select _key, name, age, payload from people order by _key"));
            try (PreparedStatement insert = connection.prepareStatement(
                    "insert into people (_key, name, age) values (?, ?, ?)")) {
                for (int number = 0; number < 1_500; number++) {
                    insert.setString(1, "many " + number);
                    insert.setString(2, "Many");
                    insert.setInt(3, 1_000 + number);
                    insert.addBatch();
                }
                insert.executeBatch();
            }
            // More than one frame of the protocol.
            assertEquals(1_500, Answers.of(connection,
                    "select name, age, story from people where age >= 1000").size());
            try (PreparedStatement query = connection.prepareStatement(
                    "select name from people where age = ?")) {
                query.setInt(1, 1_001);
                try (ResultSet rows = query.executeQuery()) {
                    assertEquals(List.of("Many"), Answers.of(rows));
                }
            }
            assertEquals(1_500,
                    Answers.change(connection, "delete from people where age >= 1000"));
            try (ResultSet tables = connection.getMetaData().getTables(null, "caches", "people",
                    null)) {
                assertTrue(tables.next());
            }
        }
    }

    /** It was gone after five minutes without use, and the error said `null`. */
    @Test
    void aStatementLivesAsLongAsItsConnection() throws Exception {
        int before = server.meta().statements();
        try (Connection connection = DriverManager.getConnection(remote);
                PreparedStatement kept = connection.prepareStatement(
                        "select name from people where age = ?")) {
            connection.createStatement();
            kept.setInt(1, 20);
            assertEquals(List.of("Ann"), Answers.of(kept.executeQuery()));
            assertTrue(server.meta().statements() >= before + 2);
            server.meta().closeConnection(new Meta.ConnectionHandle(
                    connection.unwrap(AvaticaConnection.class).id));
            assertEquals(before, server.meta().statements());
            SQLException gone = assertThrows(SQLException.class, kept::executeQuery);
            assertTrue(gone.getMessage().contains("has let go of the statement"),
                    gone.getMessage());
        }
    }

    /** What they had not read to the end stayed open, which a cache that stops waits for. */
    @Test
    void aServerThatIsClosedEndsWhatItsClientsHaveOpen() throws Exception {
        SqlServer own = SqlServer.start(grid.manager, 0);
        Statement statement = DriverManager.getConnection(
                "jdbc:entresol:remote:http://127.0.0.1:" + own.port()).createStatement();
        statement.setFetchSize(1);
        assertTrue(statement.executeQuery("select remark from people").next());
        assertTrue(own.meta().statements() > 0);
        own.close();
        assertEquals(0, own.meta().statements());
    }

    @Test
    void serverIsReachedFromThisMachineOnly() throws Exception {
        new Socket(InetAddress.getLoopbackAddress(), server.port()).close();
        for (NetworkInterface each : NetworkInterface.networkInterfaces().toList()) {
            for (InetAddress address : each.inetAddresses().toList()) {
                if (!address.isLoopbackAddress()) {
                    assertThrows(java.io.IOException.class,
                            () -> new Socket(address, server.port()).close());
                }
            }
        }
    }

    @Test
    void clientsCannotNameClassesThatTheServerLoads() throws Exception {
        Properties hostile = new Properties();
        hostile.setProperty("parserFactory", "no.such.Factory#INSTANCE");
        hostile.setProperty("container", "another");
        hostile.setProperty("keys", "purchases:BIGINT");
        try (Connection connection = DriverManager.getConnection(remote, hostile)) {
            assertEquals(List.of("20"), Answers.of(connection,
                    "select age from people where _key = 'a'"));
            try (ResultSet key = connection.getMetaData().getColumns(null, "caches", "purchases",
                    "\\_key")) {
                assertTrue(key.next());
                assertEquals(Types.BIGINT, key.getInt("DATA_TYPE"));
            }
        }
    }

    @Test
    void aConnectionHasTheServerMakeNoPage() throws Exception {
        List<String> made = Collections.synchronizedList(new ArrayList<>());
        SqlServer.Site site = (path, parameters) -> {
            Optional<SqlServer.Page> page = path.equals("/")
                    ? Optional.of(new SqlServer.Page("text/plain", Map.of(), "page"))
                    : Optional.empty();
            page.ifPresent(each -> made.add(path));
            return page;
        };
        try (SqlServer own = SqlServer.start(grid.manager, InetAddress.getLoopbackAddress(), 0,
                new SqlServer.Access(null, null, null), site);
                Connection connection = DriverManager.getConnection(
                        "jdbc:entresol:remote:http://127.0.0.1:" + own.port())) {
            assertEquals(List.of("Ann"), Answers.of(connection,
                    "select name from people where _key = 'a'"));
        }
        assertEquals(List.of(), made);
    }

    @Test
    void onlyUsersThatTheServerKnowsAreLetIn() throws Exception {
        try (SqlServer guarded = SqlServer.start(grid.manager, InetAddress.getLoopbackAddress(), 0,
                (name, password) -> name.equals("ada") && password.equals("se:cret"))) {
            String url = "jdbc:entresol:remote:http://127.0.0.1:" + guarded.port();
            for (String[] stranger : new String[][] {{null, null}, {"ada", "secret"}, {"ada", ""},
                {"bob", "se:cret"}}) {
                SQLException refused = assertThrows(SQLException.class, () ->
                        DriverManager.getConnection(url, stranger[0], stranger[1]).close());
                assertTrue(refused.getMessage().contains("users only"), refused.getMessage());
            }
            try (Connection connection = DriverManager.getConnection(url, "ada", "se:cret")) {
                assertEquals(List.of("Ann"), Answers.of(connection,
                        "select name from people where _key = 'a'"));
            }
        }
    }

    @Test
    void sqllineConnectsInProcessAndRemotely() throws Exception {
        for (String url : List.of("jdbc:entresol:container=tested", remote)) {
            String said = sqlline(url, "!tables\n!columns %\n"
                    + "select name, age from people where age = 20;\n");
            assertTrue(said.contains("people"), said);
            assertTrue(said.contains("address.city"), said);
            assertTrue(said.contains("Ann"), said);
            assertTrue(said.contains("1 row selected"), said);
        }
    }

    private static String sqlline(String url, String script) throws Exception {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream stream = new PrintStream(said, true, StandardCharsets.UTF_8);
        SqlLine tool = new SqlLine();
        tool.setOutputStream(stream);
        tool.setErrorStream(stream);
        String[] arguments = {"-d", Driver.class.getName(), "-u", url, "-n", "", "-p", "",
                "--maxWidth=400", "--historyFile=" + folder.resolve("history")};
        tool.begin(arguments, new ByteArrayInputStream(
                (script + "!quit\n").getBytes(StandardCharsets.UTF_8)), false);
        return said.toString(StandardCharsets.UTF_8);
    }

    @Test
    void shellPrintsTablesJsonAndCsv() throws Exception {
        String sql = "select _key, name, age from people order by _key";
        assertEquals("""
                _key  name  age
                ----  ----  ----
                a     Ann   20
                b     Ben   NULL
                2 rows
                """, shell(0, "", "--url", remote, sql));
        assertEquals("""
                {"_key":"a","name":"Ann","age":20}
                {"_key":"b","name":"Ben","age":null}
                """, shell(0, sql + "\n;\n", "--remote",
                "http://127.0.0.1:" + server.port(), "--json"));
        assertEquals("_key,name,age\na,Ann,20\nb,Ben,\n",
                shell(0, "", "--url", "jdbc:entresol:container=tested", "--csv", sql));
        String mistake = shell(1, "", "--url", remote, "select * from nothing");
        assertTrue(mistake.contains("there is no table `nothing`"), mistake);
        // Told once, though the server names all causes.
        assertEquals(mistake.indexOf("nothing`"), mistake.lastIndexOf("nothing`"), mistake);
        assertTrue(shell(2, "", sql).contains("usage"));
        assertTrue(shell(2, "", "--config", "/nowhere.xml", sql).contains("/nowhere.xml"));
        assertTrue(shell(0, "!tables\n", "--url", remote).contains("purchases"));
    }

    private static String shell(int status, String input, String... arguments) throws Exception {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream stream = new PrintStream(said, true, StandardCharsets.UTF_8);
        int found = Shell.run(arguments, new StringReader(input), stream, stream);
        String text = said.toString(StandardCharsets.UTF_8);
        assertEquals(status, found, text);
        return text;
    }
}
