package io.entresol.cassandra.node;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ColumnDefinitions;
import com.datastax.driver.core.ResultSet;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.SocketOptions;
import com.datastax.driver.core.exceptions.AuthenticationException;
import com.datastax.driver.core.exceptions.DriverException;
import com.datastax.driver.core.exceptions.NoHostAvailableException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.Charset;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** {@code entresol-cassandra cql}. */
final class Cql {
    static final String HELP = """
            Usage: entresol-cassandra cql [OPTIONS]
            Executes CQL statements, each of which ends with ';', and prints rows as tables.
            Without -e or -f it reads them from the standard input; `exit` ends it.

              -e STATEMENTS    executes these
              -f FILE          executes those in a file
              --json           prints each row as a line of JSON
              --dir FOLDER     the folder of the node (entresol-cassandra)
              --host ADDRESS   another node; with --port N unless that is 9042
              --user NAME      with the password in ENTRESOL_CASSANDRA_PASSWORD

            Exit status 0 if all were executed, 1 if one failed: those after it are left out.

            Examples:
              entresol-cassandra cql -e "SELECT * FROM system.local" --json
              entresol-cassandra cql -f schema.cql
            """;
    /** Rows whose columns are made equally wide. */
    private static final int PAGE = 100;
    private static final int READ_MILLISECONDS = 60_000;

    private final Session session;
    private final boolean json;
    private boolean ended;

    private Cql(Session session, boolean json) {
        this.session = session;
        this.json = json;
    }

    static int run(List<String> given) {
        Arguments arguments = Arguments.parse("cql", given,
                "-e,-f,--dir,--host,--port,--user", "--json").withoutWords();
        try (Cluster cluster = cluster(arguments); Session session = cluster.connect()) {
            Cql cql = new Cql(session, arguments.has("--json"));
            Optional<String> statements = arguments.value("-e");
            if (statements.isPresent()) {
                return cql.all(statements.get());
            }
            Optional<String> file = arguments.value("-f");
            return file.isPresent() ? cql.all(read(file.get())) : cql.standardInput();
        } catch (NoHostAvailableException nobody) {
            throw new NodeException("nobody answers CQL: "
                    + nobody.getCustomMessage(1, false, false).strip()
                    + "; start the node: entresol-cassandra start, or name another one: --host",
                    nobody);
        } catch (AuthenticationException refused) {
            throw new NodeException(refused.getMessage() + "; say who you are: --user, and the"
                    + " password in ENTRESOL_CASSANDRA_PASSWORD", refused);
        }
    }

    private static Cluster cluster(Arguments arguments) {
        Cluster.Builder builder = Cluster.builder().withoutMetrics().withoutJMXReporting()
                .withSocketOptions(new SocketOptions().setReadTimeoutMillis(READ_MILLISECONDS));
        Optional<String> host = arguments.value("--host");
        Optional<Integer> port = arguments.number("--port", 1, 65_535);
        if (host.isPresent() || port.isPresent()) {
            builder.addContactPoint(host.orElse("127.0.0.1")).withPort(port.orElse(Ports.CQL));
        } else {
            List<NodeFolder> nodes = NodeFolder.made(
                    Path.of(arguments.value("--dir", NodeFolder.DEFAULT)));
            nodes.forEach(node -> builder.addContactPoint(node.ports().address()));
            builder.withPort(nodes.get(0).ports().cql());
        }
        arguments.value("--user").ifPresent(user -> builder.withCredentials(user,
                Optional.ofNullable(System.getenv("ENTRESOL_CASSANDRA_PASSWORD")).orElse("")));
        return builder.build();
    }

    private static String read(String file) {
        try {
            return Files.readString(Path.of(file));
        } catch (IOException failure) {
            throw new NodeException("cannot read -f " + file + ": " + failure, failure);
        }
    }

    private int all(String text) {
        CqlText statements = new CqlText();
        List<String> all = new ArrayList<>(statements.add(text));
        all.add(statements.rest());
        return all.stream().allMatch(this::execute) ? 0 : 1;
    }

    /** People see what failed and go on; a script ends there. */
    private int standardInput() {
        boolean asked = System.console() != null;
        CqlText statements = new CqlText();
        try (BufferedReader lines = new BufferedReader(
                new InputStreamReader(System.in, Charset.defaultCharset()))) {
            while (!ended) {
                if (asked) {
                    String keyspace = session.getLoggedKeyspace();
                    System.out.print(!statements.rest().isEmpty() ? "...> "
                            : keyspace == null ? "cql> " : "cql:" + keyspace + "> ");
                    System.out.flush();
                }
                String line = lines.readLine();
                boolean good = line == null ? execute(statements.rest())
                        : isEnd(line) && statements.rest().isEmpty() ? execute(line)
                        : statements.add(line).stream().allMatch(this::execute);
                if (!good && !asked) {
                    return 1;
                }
                ended |= line == null;
            }
            return 0;
        } catch (IOException failure) {
            throw new NodeException("cannot read the standard input: " + failure, failure);
        }
    }

    private static boolean isEnd(String statement) {
        return statement.strip().matches("(?i)(exit|quit);?");
    }

    private boolean execute(String statement) {
        if (isEnd(statement)) {
            ended = true;
        }
        if (ended || statement.isEmpty()) {
            return true;
        }
        try {
            ResultSet rows = session.execute(statement);
            rows.getAllExecutionInfo().forEach(info -> info.getWarnings()
                    .forEach(warning -> System.err.println("warning: " + warning)));
            print(rows);
            return true;
        } catch (NoHostAvailableException nobody) {
            System.err.println("entresol-cassandra: no node answers any more: "
                    + nobody.getCustomMessage(1, false, false).strip());
        } catch (DriverException refused) {
            System.err.println("entresol-cassandra: " + refused.getMessage());
        }
        return false;
    }

    private void print(ResultSet rows) {
        List<ColumnDefinitions.Definition> columns = rows.getColumnDefinitions().asList();
        if (columns.isEmpty()) {
            return;
        }
        List<String> heading = columns.stream()
                .map(ColumnDefinitions.Definition::getName).toList();
        // Of DESCRIBE the statement is what matters, and it has several lines.
        boolean described = heading.contains("create_statement");
        Table table = new Table(heading);
        long count = 0;
        for (Row row : rows) {
            count++;
            if (json) {
                System.out.println(CqlValues.json(row));
            } else if (described) {
                System.out.println(row.getString("create_statement") + "\n");
            } else {
                table.add(CqlValues.cells(row));
                if (count % PAGE == 0) {
                    System.out.print(table);
                    table = new Table(heading);
                }
            }
        }
        if (!json && !described) {
            if (count == 0 || count % PAGE != 0) {
                System.out.print(table);
            }
            System.out.println("(" + count + (count == 1 ? " row)" : " rows)"));
        }
    }
}
