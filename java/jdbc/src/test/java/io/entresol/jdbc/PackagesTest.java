package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The packages that {@code package-info.java} draws. */
class PackagesTest {
    private static final Path SOURCES = Path.of("src/main/java/io/entresol/jdbc");
    /** Those of one line do not use each other. */
    private static final List<List<String>> LINES = List.of(List.of("server"),
            List.of("statement"), List.of("plan"), List.of("rows"),
            List.of("run", "aggregate", "index"), List.of("dialect", "column"));
    private static final Pattern USED =
            Pattern.compile("^import (?:static )?io\\.entresol\\.jdbc\\.(\\w+)(?:\\.(\\w+))?",
                    Pattern.MULTILINE);

    @Test
    void eachUsesOnlyThoseUnderIt() throws IOException {
        List<String> wrong = new ArrayList<>();
        List<String> drawn = new ArrayList<>();
        for (int line = 0; line < LINES.size(); line++) {
            List<String> under = LINES.subList(line + 1, LINES.size()).stream()
                    .flatMap(List::stream).toList();
            for (String each : LINES.get(line)) {
                drawn.add(each);
                used(SOURCES.resolve("internal").resolve(each)).stream()
                        .filter(other -> !under.contains(other))
                        .forEach(other -> wrong.add(each + " uses " + other));
            }
        }
        assertEquals(List.of(), wrong);
        try (Stream<Path> there = Files.list(SOURCES.resolve("internal"))) {
            assertEquals(drawn.stream().sorted().toList(),
                    there.map(folder -> folder.getFileName().toString()).sorted().toList());
        }
    }

    /** Packages that files of a package import from; what is not internal by the class's name. */
    private static TreeSet<String> used(Path folder) throws IOException {
        TreeSet<String> used = new TreeSet<>();
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.toList()) {
                for (MatchResult found : USED.matcher(Files.readString(file)).results().toList()) {
                    used.add(found.group(1).equals("internal") ? found.group(2) : found.group(1));
                }
            }
        }
        return used;
    }
}
