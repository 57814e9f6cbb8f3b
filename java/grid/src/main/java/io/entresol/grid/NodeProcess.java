package io.entresol.grid;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.infinispan.commons.dataconversion.internal.Json;

/** A node from the point of view of its launcher: a JVM of its own. */
final class NodeProcess {
    private static final String SETSID = "/usr/bin/setsid";
    private static final int FIRST_WITH_NATIVE_ACCESS = 22;

    private final NodePlan plan;
    private final Process process;
    private final BufferedReader said;

    /** The node of a process that was started. */
    NodeProcess(NodePlan plan, Process process) {
        this.plan = plan;
        this.process = process;
        said = new BufferedReader(
                new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /** Starts the node; a detached one outlives the launcher and its terminal. */
    static NodeProcess start(NodePlan plan, boolean detached, Optional<ClassArchive> archive) {
        NodeFolder folder = plan.folder();
        folder.process().ifPresent(running -> {
            throw new GridException("a node runs in " + folder.root() + " already, process "
                    + running.pid() + "; stop it: entresol-grid stop --dir " + folder.root());
        });
        if (folder.isElsewhere()) {
            throw new GridException("a node has the folder " + folder.root() + " that does not run"
                    + " here: on another machine, or in another container; stop it there, or name"
                    + " another folder: --dir");
        }
        plan.ports().check(plan);
        folder.prepare(plan);
        ProcessBuilder builder = new ProcessBuilder(command(plan, detached, archive));
        if (detached) {
            builder.redirectInput(new File("/dev/null"));
            builder.redirectError(folder.log().resolve("node.err").toFile());
        } else {
            builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        }
        try {
            Process process = builder.start();
            folder.writePid(process.pid());
            return new NodeProcess(plan, process);
        } catch (IOException failure) {
            throw new GridException("cannot start " + builder.command().get(0) + ": "
                    + failure.getMessage(), failure);
        }
    }

    /** What the node says of itself once it serves. */
    Json awaitRunning() {
        StringBuilder java = new StringBuilder();
        try {
            for (String line = said.readLine(); line != null; line = said.readLine()) {
                if (!line.startsWith("{")) {
                    // Java itself says there that a heap is too small, or was.
                    java.append(java.isEmpty() ? "" : ": ").append(line.strip());
                    continue;
                }
                Json facts = Json.read(line);
                if (facts.has("pid")) {
                    return facts;
                }
                throw new GridException(failed(facts.at("error").asString()));
            }
            throw new GridException(failed(java.isEmpty() ? "its process ended"
                    : "Java says: " + java));
        } catch (IOException failure) {
            throw new GridException("node " + plan.name() + " cannot be heard: " + failure,
                    failure);
        }
    }

    private String failed(String why) {
        return "node " + plan.name() + " did not start: " + why + "; more is in "
                + plan.folder().log();
    }

    boolean isAlive() {
        return process.isAlive();
    }

    void tellToStop() {
        process.destroy();
    }

    /** Tells all nodes of the cluster to stop, each knowing that none has anything newer. */
    void stopCluster() {
        try (OutputStream lifeline = process.getOutputStream()) {
            lifeline.write('\n');
            lifeline.flush();
            awaitEnd();
        } catch (IOException gone) {
            tellToStop();
            awaitEnd();
        }
    }

    int awaitEnd() {
        try {
            return process.waitFor();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new GridException("interrupted while node " + plan.name() + " stopped",
                    interrupted);
        }
    }

    /** What a node may reach in Java's own modules. */
    static List<String> modules() {
        List<String> flags = new ArrayList<>(List.of(
                "--add-opens=java.base/java.util=ALL-UNNAMED",
                "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED"));
        if (Runtime.version().feature() >= FIRST_WITH_NATIVE_ACCESS) {
            flags.add("--enable-native-access=ALL-UNNAMED");
        }
        return flags;
    }

    private static List<String> command(NodePlan plan, boolean detached,
            Optional<ClassArchive> archive) {
        List<String> command = new ArrayList<>();
        // A terminal's interrupt is for the launcher, which stops the nodes in order.
        if (Files.isExecutable(Path.of(SETSID))) {
            command.add(SETSID);
        }
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-Xmx" + plan.heap());
        command.add("-XX:+ExitOnOutOfMemoryError");
        command.add("-Djava.net.preferIPv4Stack=true");
        command.addAll(modules());
        command.addAll(ClassArchive.flags(archive, plan));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"),
                Node.class.getName(), plan.folder().root().toString()));
        if (!detached) {
            command.add(Node.LIFELINE);
        }
        return command;
    }
}
