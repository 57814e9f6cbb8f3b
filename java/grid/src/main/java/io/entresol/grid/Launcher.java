package io.entresol.grid;

import io.entresol.grid.bench.Bench;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.HelpCommand;

/**
 * The program {@code entresol-grid}. Exit status: 0 done, 1 the thing asked for failed, 2 could not
 * run.
 */
@Command(name = "entresol-grid", mixinStandardHelpOptions = true, version = "entresol-grid 0.1.0",
        description = "A grid of Infinispan nodes whose caches live on flash.",
        subcommands = {Start.class, Deploy.class, Undeploy.class, ListCaches.class, Info.class,
            Query.class, Sql.class, Bench.class, Stop.class, UserCommand.class,
            HelpCommand.class})
public final class Launcher {
    public static void main(String[] arguments) {
        System.exit(run(arguments));
    }

    /** Does what the arguments say. */
    public static int run(String... arguments) {
        return commandLine().execute(arguments);
    }

    static CommandLine commandLine() {
        return new CommandLine(new Launcher())
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setUsageHelpAutoWidth(true)
                .setExecutionExceptionHandler((failure, line, parsed) -> said(failure));
    }

    /** A mistake of ours keeps its stack; what people can mend is a sentence. */
    private static int said(Exception failure) throws Exception {
        if (!(failure instanceof GridException)) {
            throw failure;
        }
        System.err.println("entresol-grid: " + failure.getMessage());
        return CommandLine.ExitCode.USAGE;
    }
}
