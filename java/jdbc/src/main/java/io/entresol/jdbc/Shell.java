package io.entresol.jdbc;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/**
 * Runs SQL from the command line or from lines of standard input, and prints what comes back as a
 * table, as JSON lines or as CSV. Exit status: 0 done, 1 a statement failed, 2 could not run.
 */
public final class Shell {
    private static final String HELP = """
            usage: java -cp ... io.entresol.jdbc.Shell WHERE [--json|--csv] [SQL]...

            WHERE is one of
              --config FILE     an Infinispan configuration, whose container starts in this process
              --remote URL      a server of SQL, such as http://127.0.0.1:11765
              --url URL         any URL that begins with jdbc:entresol:

            Without SQL it runs what standard input has; a semicolon at the end of a line ends a
            statement. `!tables` and `!columns TABLE` show what there is.

              Shell --remote http://127.0.0.1:11765 "select count(*) from people"
              echo "select * from people where age > 30;" | Shell --config grid.xml --csv
            """;

    private static final String REMOTE_ERROR = "Remote driver error: ";

    private final Connection connection;
    private final Printer printer;
    private final PrintStream errors;
    private int failed;

    /** Runs statements on a connection, which stays open. */
    public Shell(Connection connection, Printer printer, PrintStream errors) {
        this.connection = connection;
        this.printer = printer;
        this.errors = errors;
    }

    /** The command. */
    public static void main(String[] arguments) throws IOException {
        Reader input = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        System.exit(run(arguments, input, System.out, System.err));
    }

    /** As the command, with its input and outputs; its exit status. */
    static int run(String[] arguments, Reader input, PrintStream output, PrintStream errors)
            throws IOException {
        String url = null;
        Printer.Format format = Printer.Format.TABLE;
        List<String> statements = new ArrayList<>();
        for (int place = 0; place < arguments.length; place++) {
            String argument = arguments[place];
            String value = place + 1 < arguments.length ? arguments[place + 1] : "";
            switch (argument) {
                case "--help" -> {
                    output.print(HELP);
                    return 0;
                }
                case "--json" -> format = Printer.Format.JSON;
                case "--csv" -> format = Printer.Format.CSV;
                case "--url", "--config", "--remote" -> {
                    url = switch (argument) {
                        case "--config" -> Driver.PREFIX + "config=" + value;
                        case "--remote" -> Driver.PREFIX + "remote:" + value;
                        default -> value;
                    };
                    place++;
                }
                default -> {
                    if (argument.startsWith("--")) {
                        errors.println("there is no option " + argument + "\n\n" + HELP);
                        return 2;
                    }
                    statements.add(argument);
                }
            }
        }
        if (url == null) {
            errors.println("nothing says which caches\n\n" + HELP);
            return 2;
        }
        return connected(url, new Printer(output, format), statements, input, errors);
    }

    private static int connected(String url, Printer printer, List<String> statements,
            Reader input, PrintStream errors) throws IOException {
        Connection opened;
        try {
            opened = new Driver().connect(url, new Properties());
            if (opened == null) {
                errors.println("URL " + url + " does not begin with " + Driver.PREFIX);
                return 2;
            }
        } catch (SQLException | RuntimeException failure) {
            errors.println(failure.getMessage());
            return 2;
        }
        try (Connection connection = opened) {
            return new Shell(connection, printer, errors).run(statements, input);
        } catch (SQLException failure) {
            errors.println(failure.getMessage());
            return 2;
        }
    }

    /** Runs them, or what the input has if there are none; 1 if one of them failed, else 0. */
    public int run(List<String> statements, Reader input) throws IOException {
        if (statements.isEmpty()) {
            runLines(new BufferedReader(input));
        } else {
            statements.forEach(this::run);
        }
        return failed == 0 ? 0 : 1;
    }

    private void runLines(BufferedReader lines) throws IOException {
        StringBuilder statement = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            statement.append(line).append('\n');
            if (line.stripTrailing().endsWith(";") || line.startsWith("!")) {
                run(statement.toString());
                statement.setLength(0);
            }
        }
        run(statement.toString());
    }

    private void run(String text) {
        String sql = text.strip().replaceAll(";+$", "");
        if (sql.isEmpty()) {
            return;
        }
        try (Statement statement = connection.createStatement()) {
            if (sql.equals("!tables")) {
                print(connection.getMetaData().getTables(null, "caches", null, null));
            } else if (sql.startsWith("!columns ")) {
                print(connection.getMetaData().getColumns(null, "caches",
                        sql.substring("!columns ".length()).strip(), null));
            } else if (statement.execute(sql)) {
                print(statement.getResultSet());
            } else {
                printer.changed(statement.getLargeUpdateCount());
            }
        } catch (SQLException | RuntimeException failure) {
            failed++;
            errors.println(reason(failure));
        }
    }

    /** A server sends all causes in a row, which say the same; the first of them says it all. */
    private static String reason(Exception failure) {
        String text = String.valueOf(failure.getMessage());
        int start = text.indexOf(REMOTE_ERROR);
        if (start < 0) {
            return text;
        }
        String first = text.substring(start + REMOTE_ERROR.length()).split(" -> ", 2)[0];
        return first.replaceFirst("^(?:[\\w.]+(?:Exception|Error): )+", "").strip();
    }

    private void print(ResultSet rows) throws SQLException {
        try (rows) {
            printer.print(rows);
        }
    }
}
