package io.entresol.cassandra.node;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** {@code entresol-cassandra stop}. */
final class Stop {
    static final String HELP = """
            Usage: entresol-cassandra stop [OPTIONS]
            Stops the nodes of a folder. Nothing is lost, and the next start is a fast one.

              --dir FOLDER     the folder that they were started with (entresol-cassandra)
            """;
    private static final long PATIENCE_SECONDS = 120;
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private Stop() {
    }

    static int run(List<String> given) {
        Arguments arguments = Arguments.parse("stop", given, "--dir", "").withoutWords();
        Path folder = Path.of(arguments.value("--dir", NodeFolder.DEFAULT));
        List<NodeFolder> nodes = NodeFolder.made(folder);
        List<ProcessHandle> running = nodes.stream().map(NodeFolder::process)
                .flatMap(Optional::stream).toList();
        if (running.isEmpty()) {
            throw new NodeException("no node runs in " + folder.toAbsolutePath()
                    + "; name the folder that it was started with: --dir");
        }
        // All are told before any is waited for.
        running.forEach(ProcessHandle::destroy);
        running.forEach(Stop::awaitEnd);
        nodes.forEach(NodeFolder::removePid);
        System.out.println("stopped: " + running.size());
        return 0;
    }

    private static void awaitEnd(ProcessHandle process) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (!NodeFolder.hasEnded(process)) {
            if (System.nanoTime() > deadline) {
                throw new NodeException("process " + process.pid() + " was told to stop and still"
                        + " runs after " + PATIENCE_SECONDS + " s; end it with kill -9 "
                        + process.pid() + ": what was acknowledged stays");
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }
}
