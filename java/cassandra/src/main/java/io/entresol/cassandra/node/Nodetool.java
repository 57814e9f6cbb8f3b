package io.entresol.cassandra.node;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** {@code entresol-cassandra nodetool}: Cassandra's own, in a process of its own. */
final class Nodetool {
    static final String HELP = """
            Usage: entresol-cassandra nodetool [--dir FOLDER] [--node N] WORDS...
            Cassandra's nodetool, which asks the first node of the folder, or its node N.

            Examples:
              entresol-cassandra nodetool status
              entresol-cassandra nodetool --node 2 info
            """;
    private static final String MAIN = "org.apache.cassandra.tools.NodeTool";

    private Nodetool() {
    }

    static int run(List<String> given) {
        List<String> words = new ArrayList<>(given);
        List<String> own = new ArrayList<>();
        while (words.size() > 1 && List.of("--dir", "--node").contains(words.get(0))) {
            own.add(words.remove(0));
            own.add(words.remove(0));
        }
        Arguments arguments = Arguments.parse("nodetool", own, "--dir,--node", "");
        List<NodeFolder> nodes = NodeFolder.made(
                Path.of(arguments.value("--dir", NodeFolder.DEFAULT)));
        int number = arguments.number("--node", 1, nodes.size()).orElse(1);
        NodeFolder node = nodes.get(number - 1);
        if (node.process().isEmpty()) {
            throw new NodeException("the node in " + node.root() + " does not run; start it:"
                    + " entresol-cassandra start");
        }
        return ask(node, words);
    }

    /** What the tool says goes where the launcher's own words go. */
    static int ask(NodeFolder node, List<String> words) {
        List<String> command = new ArrayList<>(Java17.command());
        command.addAll(List.of("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-Dcassandra.storagedir=" + node.root(),
                "-Dlogback.configurationFile=io/entresol/cassandra/node/silent.xml",
                "-cp", Java17.classPath(), MAIN, "-h", "127.0.0.1", "-p",
                "" + node.ports().jmx()));
        command.addAll(words);
        try {
            System.out.flush();
            return new ProcessBuilder(command).inheritIO().start().waitFor();
        } catch (IOException failure) {
            throw new NodeException("cannot start " + command.get(0) + ": " + failure, failure);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new NodeException("interrupted", interrupted);
        }
    }
}
