package io.entresol.cassandra.node;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** How Cassandra's own programs are started. */
final class Java17 {
    private static final int VERSION = 17;
    private static final String TO_ALL = "=ALL-UNNAMED";
    private static final List<String> EXPORTED = List.of("java.base/jdk.internal.misc",
            "java.base/java.lang.ref", "java.management.rmi/com.sun.jmx.remote.internal.rmi",
            "java.rmi/sun.rmi.registry", "java.rmi/sun.rmi.server", "java.sql/java.sql",
            "jdk.unsupported/sun.misc", "jdk.attach/sun.tools.attach");
    private static final List<String> OPENED = List.of("java.base/java.lang.module",
            "java.base/jdk.internal.loader", "java.base/jdk.internal.ref",
            "java.base/jdk.internal.reflect", "java.base/jdk.internal.math",
            "java.base/jdk.internal.module", "java.base/jdk.internal.util.jar",
            "java.base/sun.nio.ch", "java.base/java.io", "java.base/java.lang.reflect",
            "java.base/java.lang", "java.base/java.util", "java.base/java.nio",
            "jdk.management/com.sun.management.internal");

    private Java17() {
    }

    /** Java, with what Cassandra reaches in its modules. */
    static List<String> command() {
        if (Runtime.version().feature() != VERSION) {
            throw new NodeException("this is Java " + Runtime.version().feature()
                    + " and Cassandra needs Java 17; set JAVA_HOME to one");
        }
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        EXPORTED.forEach(name -> command.add("--add-exports=" + name + TO_ALL));
        OPENED.forEach(name -> command.add("--add-opens=" + name + TO_ALL));
        command.add("-Djava.net.preferIPv4Stack=true");
        command.add("-Djdk.attach.allowAttachSelf=true");
        return command;
    }

    /** Cassandra's jars, and that of the plug-in. */
    static String classPath() {
        String jar = System.getProperty("entresol.jar", "");
        return (jar.isEmpty() ? "" : jar + ":") + lib() + "/*";
    }

    /**
     * The same for a node in a folder. It has a copy of a source tree's jar: a build must not
     * change the jar of a node that runs.
     */
    static String classPath(Path folder) throws IOException {
        String jar = System.getProperty("entresol.jar", "");
        if (jar.isEmpty()) {
            return classPath();
        }
        Path copy = folder.resolve("entresol-cassandra.jar");
        Files.copy(Path.of(jar), copy, StandardCopyOption.REPLACE_EXISTING);
        return copy + ":" + lib() + "/*";
    }

    /** The agent by which Cassandra measures objects. */
    static String measuringAgent() {
        try (Stream<Path> jars = Files.list(lib())) {
            return "-javaagent:" + jars
                    .filter(jar -> jar.getFileName().toString().matches("jamm-.*[.]jar"))
                    .findFirst().orElseThrow(() -> new NodeException("there is no jamm-*.jar in "
                            + lib() + "; install the node's lib/ anew"));
        } catch (IOException failure) {
            throw new NodeException("cannot list " + lib() + ": " + failure, failure);
        }
    }

    private static Path lib() {
        String lib = System.getProperty("entresol.lib");
        if (lib == null) {
            throw new NodeException("the launcher does not know Cassandra's jars; start it by"
                    + " bin/entresol-cassandra");
        }
        return Path.of(lib);
    }
}
