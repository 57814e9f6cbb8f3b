package io.entresol.grid;

import io.entresol.jdbc.Driver;
import io.entresol.jdbc.Printer;
import io.entresol.jdbc.Shell;
import io.entresol.jdbc.TlsFiles;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
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
        Optional<TlsFiles> tls = target.tlsFiles();
        tls.ifPresent(files -> addTo(login, files));
        int port = Ports.sql(target.port());
        String server = target.host() + ":" + port;
        try {
            return new Driver().connect(Driver.PREFIX + "remote:"
                    + (tls.isPresent() ? "https://" : "http://") + server, login);
        } catch (SQLException refused) {
            Optional<String> said = tls.isPresent()
                    ? TlsFailure.ofEncrypted(target.host(), port, refused)
                    : TlsFailure.ofPlain(target.host(), port);
            if (said.isPresent()) {
                throw new GridException(said.get(), refused);
            }
            throw new GridException(refused.getMessage() + (refused.getMessage()
                    .contains("users only") ? ": --user NAME, and its password in"
                    + " ENTRESOL_GRID_PASSWORD or by --password"
                    : "; start a node: entresol-grid start, or name another: --server HOST:PORT,"
                    + " whose port for SQL is " + Ports.sql(0) + " above it"), refused);
        }
    }

    private static void addTo(Properties login, TlsFiles files) {
        Map<String, Path> named = new HashMap<>();
        named.put("tls-ca", files.authorities());
        named.put("tls-cert", files.certificate());
        named.put("tls-key", files.key());
        named.forEach((name, file) -> {
            if (file != null) {
                login.setProperty(name, file.toString());
            }
        });
    }
}
