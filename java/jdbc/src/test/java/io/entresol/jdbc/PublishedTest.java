package io.entresol.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The artefact as others get it: with the dependencies of its POM, and none of the tests'. */
class PublishedTest {
    @TempDir
    Path folder;

    /** A class of Infinispan was missing, which tests had. */
    @Test
    void theArtefactAloneIsEnoughForAProgramThatAsksInItsProcessAndRemotely() throws Exception {
        String brought = Files.readString(Path.of(System.getProperty("entresol.sql.classpath")));
        Path program = folder.resolve("Published.java");
        Files.copy(PublishedTest.class.getResourceAsStream("/published/Published.java"), program);
        Path errors = folder.resolve("errors");
        Process run = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("entresol.sql.published")
                + File.pathSeparator + brought.strip(), program.toString(),
                folder.resolve("state").toString())
                .redirectError(errors.toFile()).start();
        String said = new String(run.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, run.waitFor(), Files.readString(errors));
        assertEquals(List.of("sum 7", "sum 14"), said.lines()
                .filter(line -> line.startsWith("sum ")).collect(Collectors.toList()));
    }
}
