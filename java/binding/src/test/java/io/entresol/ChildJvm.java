package io.entresol;

import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;

/** A JVM beside this one, with its way to the native library. */
final class ChildJvm {
    private ChildJvm() {
    }

    /** Starts the class with these arguments; what it complains of goes where this JVM's does. */
    static Process start(List<String> flags, Class<?> main, String... arguments)
            throws IOException {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + File.separator + "bin/java");
        for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (flag.startsWith("-Dentresol.heap.native=jni") || flag.contains("native-access")) {
                command.add(flag);
            }
        }
        command.addAll(flags);
        command.addAll(List.of("-cp", System.getProperty(
                "surefire.test.class.path", System.getProperty("java.class.path")),
                main.getName()));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }
}
