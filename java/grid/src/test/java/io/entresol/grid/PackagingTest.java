package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.yaml.snakeyaml.Yaml;
import picocli.CommandLine;

/** The files for containers can be read by the programs that they are for. */
class PackagingTest {
    private static final Path FOLDER =
            Path.of(System.getProperty("entresol.grid.home"), "../../packaging/grid");
    private static final Set<Integer> PORTS = Set.of(11222, 6379, 11211, 11765);

    private static List<Map<String, Object>> documents(String file) throws IOException {
        return StreamSupport.stream(new Yaml().loadAll(Files.readString(FOLDER.resolve(file)))
                .spliterator(), false).map(PackagingTest::map).toList();
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Object value) {
        return (Map<String, Object>) value;
    }

    private static Object at(Object from, Object... path) {
        Object found = from;
        for (Object step : path) {
            found = step instanceof Integer index ? ((List<?>) found).get(index)
                    : map(found).get(step);
            assertNotNull(found, step + " of " + from);
        }
        return found;
    }

    /** As our own program takes them: an option that is gone fails here. */
    private static void assertStarts(Object arguments) {
        List<?> words = (List<?>) arguments;
        CommandLine.ParseResult parsed = Launcher.commandLine()
                .parseArgs(words.stream().map(String::valueOf).toArray(String[]::new));
        CommandLine.ParseResult start = parsed.subcommand();
        assertEquals("start", start.commandSpec().name());
        assertEquals(3, ((List<?>) start.matchedOptionValue("--join", List.of())).size());
        assertTrue(start.hasMatchedOption("--users"), "anybody could connect");
        assertEquals(Path.of("/var/lib/grid"), start.matchedOptionValue("--dir", null));
    }

    @Test
    void theComposeFileStartsThreeNodesWithAVolumeEach() throws IOException {
        Map<String, Object> compose = documents("compose.yaml").get(0);
        Map<String, Object> services = map(at(compose, "services"));
        assertEquals(Set.of("grid-0", "grid-1", "grid-2"), services.keySet());
        services.forEach((name, service) -> {
            assertStarts(at(service, "command"));
            assertEquals(name + ":/var/lib/grid", at(service, "volumes", 0));
            assertTrue(map(at(compose, "volumes")).containsKey(name));
            assertNotNull(at(service, "healthcheck", "test"));
        });
        assertEquals(PORTS, ((List<?>) at(services.get("grid-0"), "ports")).stream()
                .map(port -> Integer.valueOf(String.valueOf(port).split(":")[2]))
                .collect(Collectors.toSet()));
    }

    @Test
    void theManifestIsAStatefulSetWithAVolumeForEachNodeAndProbesOnHealth() throws IOException {
        List<Map<String, Object>> documents = documents("../kubernetes/grid.yaml");
        assertEquals(List.of("Service", "NetworkPolicy", "StatefulSet"),
                documents.stream().map(each -> each.get("kind")).toList());
        Object set = at(documents.get(2), "spec");
        assertEquals(at(documents.get(0), "metadata", "name"), at(set, "serviceName"));
        assertEquals(at(documents.get(0), "spec", "selector"), at(set, "selector", "matchLabels"));
        Object node = at(set, "template", "spec", "containers", 0);
        assertStarts(at(node, "args"));
        assertEquals("/health/ready", at(node, "readinessProbe", "httpGet", "path"));
        assertEquals("/health/live", at(node, "livenessProbe", "httpGet", "path"));
        Object volume = at(set, "volumeClaimTemplates", 0, "metadata", "name");
        assertEquals(volume, at(node, "volumeMounts", 0, "name"));
        assertEquals("/var/lib/grid", at(node, "volumeMounts", 0, "mountPath"));
        assertEquals(PORTS, ((List<?>) at(node, "ports")).stream()
                .map(port -> at(port, "containerPort")).collect(Collectors.toSet()));
        assertEquals(PORTS, ((List<?>) at(documents.get(1), "spec", "ingress", 0, "ports"))
                .stream().map(port -> at(port, "port")).collect(Collectors.toSet()));
        assertTrue(((List<?>) at(documents.get(0), "spec", "ports")).stream()
                .map(port -> at(port, "port")).toList().containsAll(PORTS));
    }
}
