package io.entresol.cassandra.node;

import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * The program {@code entresol-cassandra}. Exit status: 0 done, 1 the thing asked for failed, 2
 * could not run.
 */
public final class Launcher {
    private static final String HELP = """
            Usage: entresol-cassandra COMMAND [OPTIONS]
            A stock Cassandra node on this machine whose tables can be on flash.

              start      starts a node, or a cluster of nodes
              stop       stops them
              status     says which run, where, and how large their stores are
              cql        executes CQL statements, or reads them from a terminal
              nodetool   Cassandra's nodetool
            `entresol-cassandra COMMAND --help` says more.
            """;
    private static final Map<String, String> HELPS = Map.of("start", Start.HELP, "stop", Stop.HELP,
            "status", Status.HELP, "cql", Cql.HELP, "nodetool", Nodetool.HELP);
    private static final int FAILED_TO_RUN = 2;

    private Launcher() {
    }

    /** Does what the arguments say, and ends the process. */
    public static void main(String[] arguments) {
        System.exit(run(Arrays.asList(arguments)));
    }

    private static int run(List<String> arguments) {
        String command = arguments.isEmpty() ? "help" : arguments.get(0);
        if (!HELPS.containsKey(command)) {
            boolean asked = List.of("help", "--help", "-h").contains(command);
            (asked ? System.out : System.err).print(HELP);
            if (!asked) {
                System.err.println("entresol-cassandra: there is no command '" + command
                        + "'; expected one of those above");
            }
            return asked ? 0 : FAILED_TO_RUN;
        }
        List<String> rest = arguments.subList(1, arguments.size());
        if (!rest.isEmpty() && List.of("--help", "-h").contains(rest.get(0))) {
            System.out.print(HELPS.get(command));
            return 0;
        }
        try {
            return switch (command) {
                case "start" -> Start.run(rest);
                case "stop" -> Stop.run(rest);
                case "status" -> Status.run(rest);
                case "cql" -> Cql.run(rest);
                default -> Nodetool.run(rest);
            };
        } catch (NodeException sentence) {
            System.err.println("entresol-cassandra: " + sentence.getMessage());
            return FAILED_TO_RUN;
        }
    }
}
