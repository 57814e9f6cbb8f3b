package io.entresol.grid;

import io.entresol.jdbc.Driver;
import io.entresol.jdbc.Printer;
import io.entresol.jdbc.Shell;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code entresol-grid sql}. */
@Command(name = "sql", mixinStandardHelpOptions = true,
        description = {"Runs SQL on the caches of a grid that have an index, and prints what it"
            + " finds as a table.",
            "Exit status: 0 done, 1 a statement failed, 2 could not run."},
        footer = {"", "Examples:",
            "  entresol-grid sql \"select name, price from orders where price > 100\"",
            "  entresol-grid sql --csv \"select * from orders\" > orders.csv",
            "  entresol-grid sql !tables \"!columns orders\"",
            "  entresol-grid sql < statements.sql"})
final class Sql implements Callable<Integer> {
    @Parameters(paramLabel = "STATEMENT", description = "SQL, !tables or !columns TABLE; without"
            + " any, what standard input has: a semicolon at the end of a line ends a statement")
    private List<String> statements = List.of();

    @Option(names = "--csv", description = "print CSV")
    private boolean csv;

    @Mixin
    private Target target;

    @Override
    public Integer call() throws IOException {
        if (csv && target.json()) {
            throw new GridException("--csv and --json exclude each other; leave one of them out");
        }
        Printer.Format format = csv ? Printer.Format.CSV
                : target.json() ? Printer.Format.JSON : Printer.Format.TABLE;
        Reader input = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        try (Connection connection = connect()) {
            return new Shell(connection, new Printer(System.out, format), System.err)
                    .run(statements, input);
        } catch (SQLException failure) {
            throw new GridException(failure.getMessage(), failure);
        }
    }

    private Connection connect() {
        // Complains about what no node could be.
        target.rest();
        Properties login = new Properties();
        if (target.user() != null) {
            login.setProperty("user", target.user());
            login.setProperty("password", target.password());
        }
        String server = target.host() + ":" + Ports.sql(target.port());
        try {
            return new Driver().connect(Driver.PREFIX + "remote:http://" + server, login);
        } catch (SQLException refused) {
            throw new GridException(refused.getMessage() + (refused.getMessage()
                    .contains("users only") ? ": --user NAME, and its password in"
                    + " ENTRESOL_GRID_PASSWORD or by --password"
                    : "; start a node: entresol-grid start, or name another: --server HOST:PORT,"
                    + " whose port for SQL is " + Ports.sql(0) + " above it"), refused);
        }
    }
}
