package io.entresol.cassandra.node;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** {@code entresol-cassandra status}. */
final class Status {
    static final String HELP = """
            Usage: entresol-cassandra status [OPTIONS]
            Lists the nodes of a folder, then what nodetool says of the ring. STORE is the flash
            that the store takes, of its capacity. Exit status 0 if all nodes serve, else 1.

              --dir FOLDER     the folder that they were started with (entresol-cassandra)
              --json           the list as JSON, without the ring
            """;
    private static final long MEBIBYTE = 1 << 20;

    private Status() {
    }

    static int run(List<String> given) {
        Arguments arguments = Arguments.parse("status", given, "--dir", "--json").withoutWords();
        List<NodeFolder> nodes = NodeFolder.made(
                Path.of(arguments.value("--dir", NodeFolder.DEFAULT)));
        List<Map<String, Object>> all = nodes.stream().map(Status::facts).toList();
        if (arguments.has("--json")) {
            System.out.println(json(all));
        } else {
            System.out.print(table(all));
        }
        Optional<NodeFolder> serving = nodes.stream().filter(NodeFolder::serves).findFirst();
        if (serving.isPresent() && !arguments.has("--json")) {
            System.out.println();
            Nodetool.ask(serving.get(), List.of("status"));
        }
        return all.stream().allMatch(node -> node.get("state").equals("serves")) ? 0 : 1;
    }

    private static Map<String, Object> facts(NodeFolder node) {
        Ports ports = node.ports();
        Optional<ProcessHandle> process = node.process();
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("folder", node.root().toString());
        facts.put("state", process.isEmpty() ? "stopped" : node.serves() ? "serves" : "starts");
        facts.put("address", ports.address());
        facts.put("cql_port", ports.cql());
        facts.put("storage_port", ports.storage());
        facts.put("jmx_port", ports.jmx());
        facts.put("pid", process.map(ProcessHandle::pid).orElse(null));
        facts.put("resident_bytes", process.map(Status::resident).orElse(0L));
        facts.put("store_bytes", taken(node.store()));
        facts.put("store_capacity_bytes", size(node.store()));
        return facts;
    }

    private static String table(List<Map<String, Object>> all) {
        Table table = new Table(List.of("NODE", "STATE", "CQL", "NODETOOL", "PROCESS", "MEMORY",
                "STORE"));
        for (Map<String, Object> node : all) {
            table.add(List.of("" + node.get("folder"), "" + node.get("state"),
                    node.get("address") + ":" + node.get("cql_port"), "" + node.get("jmx_port"),
                    node.get("pid") == null ? "-" : "" + node.get("pid"),
                    mebibytes(node.get("resident_bytes")) + " MiB",
                    mebibytes(node.get("store_bytes")) + " of "
                            + mebibytes(node.get("store_capacity_bytes")) + " MiB"));
        }
        return table.toString();
    }

    static String json(Object value) {
        try {
            return new ObjectMapper().writeValueAsString(value);
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static long mebibytes(Object bytes) {
        return (Long) bytes / MEBIBYTE;
    }

    private static long resident(ProcessHandle process) {
        try {
            return new ArrayList<>(Files.readAllLines(
                    Path.of("/proc/" + process.pid() + "/status"))).stream()
                    .filter(line -> line.startsWith("VmRSS:"))
                    .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")) << 10)
                    .findFirst().orElse(0);
        } catch (IOException gone) {
            return 0;
        }
    }

    private static long size(Path store) {
        try {
            return Files.exists(store) ? Files.size(store) : 0;
        } catch (IOException gone) {
            return 0;
        }
    }

    /** What a file takes of its file system: a store's is full of holes at first. */
    private static long taken(Path store) {
        if (!Files.exists(store)) {
            return 0;
        }
        try {
            Process du = new ProcessBuilder("du", "-k", store.toString())
                    .redirectError(ProcessBuilder.Redirect.DISCARD).start();
            try (BufferedReader said = du.inputReader(StandardCharsets.UTF_8)) {
                String line = said.readLine();
                return line == null ? size(store) : Long.parseLong(line.split("\\s")[0]) << 10;
            }
        } catch (IOException none) {
            return size(store);
        }
    }
}
