package io.entresol.heap;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A JVM like this one that runs a program of the tests. */
final class ChildJvm {
    final int status;
    final String out;
    final String err;

    private ChildJvm(int status, String out, String err) {
        this.status = status;
        this.out = out;
        this.err = err;
    }

    /** The ways into the native library that this Java has. */
    static List<String> paths() {
        return Runtime.version().feature() >= 22 ? List.of("jni", "ffm") : List.of("jni");
    }

    /** A command that runs {@code program} with the one flag that newer versions of Java need. */
    static List<String> command(String path, List<String> flags, Class<?> program,
            String... arguments) {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + File.separator + "bin/java");
        if (Runtime.version().feature() >= 22) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        command.add("-Dentresol.heap.native=" + path);
        command.addAll(flags);
        // Surefire may hand the class path over in a jar of its own.
        command.addAll(List.of("-cp", System.getProperty("surefire.test.class.path",
                System.getProperty("java.class.path")), program.getName()));
        command.addAll(List.of(arguments));
        return command;
    }

    /** Runs a command to its end; {@code folder} takes what it prints. */
    static ChildJvm run(Path folder, List<String> command)
            throws IOException, InterruptedException {
        File out = Files.createTempFile(folder, "out", null).toFile();
        File err = Files.createTempFile(folder, "err", null).toFile();
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectOutput(out).redirectError(err);
        // The JVM would tell of these on its standard error.
        builder.environment().remove("JAVA_TOOL_OPTIONS");
        int status = builder.start().waitFor();
        return new ChildJvm(status, text(out), text(err));
    }

    private static String text(File file) throws IOException {
        return Files.readString(file.toPath(), StandardCharsets.UTF_8);
    }
}
