package io.entresol.jdbc.internal.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Logger;
import javax.servlet.ServletException;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.handler.HandlerWrapper;

/**
 * The requests that a server is answering, and whether their clients still wait. A thread that
 * answers a request does not read its connection meanwhile, and so does not notice its end. For
 * runs longer than a second, the system is asked once a second, and the runs of clients that have
 * gone are cancelled.
 */
public final class Clients implements AutoCloseable {
    private static final long LOOK_MS = 1_000;
    private static final List<Path> CONNECTIONS =
            List.of(Path.of("/proc/self/net/tcp"), Path.of("/proc/self/net/tcp6"));
    /** What the system calls a connection that both ends have open. */
    private static final String ESTABLISHED = "01";

    private static final ThreadLocal<Asking> CURRENT = new ThreadLocal<>();

    private final Set<Asking> running = ConcurrentHashMap.newKeySet();
    private final Thread watch = new Thread(this::watch, "sql clients");
    private boolean closed;

    /** The last run of each statement, by its number. */
    private final Map<Integer, Run> runs = new ConcurrentHashMap<>();

    /** A request, while it is answered. */
    private static final class Asking {
        private final Clients of;
        private final String ports;
        private Integer statement;
        private volatile Run run;
        private boolean seen;

        Asking(Clients of, String ports) {
            this.of = of;
            this.ports = ports;
        }
    }

    public Clients() {
        watch.setDaemon(true);
        watch.start();
    }

    /** Notes which statement the request that this thread answers asks for. */
    public static void ask(int statement) {
        Asking asking = CURRENT.get();
        if (asking != null) {
            asking.statement = statement;
        }
    }

    /** Notes that what this thread does for a client, if it does, is a part of a run. */
    static void serve(Run run) {
        Asking asking = CURRENT.get();
        if (asking == null || run == null) {
            return;
        }
        asking.run = run;
        asking.of.running.add(asking);
        if (asking.statement != null) {
            asking.of.runs.put(asking.statement, run);
        }
    }

    /** Notes that the last run of a statement goes on. */
    public void goOn(int statement) {
        ask(statement);
        serve(runs.get(statement));
    }

    /** Ends what a statement is doing. */
    public void cancel(int statement) {
        Run run = runs.get(statement);
        if (run != null) {
            run.cancel();
        }
    }

    /** There is no such statement any more. */
    public void forget(int statement) {
        runs.remove(statement);
    }

    /** Stands before all that answers requests. */
    public HandlerWrapper handler() {
        return new HandlerWrapper() {
            @Override
            public void handle(String target, Request base, HttpServletRequest request,
                    HttpServletResponse response) throws IOException, ServletException {
                Asking asking = new Asking(Clients.this,
                        ports(request.getLocalPort(), request.getRemotePort()));
                CURRENT.set(asking);
                try {
                    super.handle(target, base, request, response);
                } finally {
                    CURRENT.remove();
                    running.remove(asking);
                }
            }
        };
    }

    /** How many requests have a run under way. */
    public int running() {
        return running.size();
    }

    private static String ports(int local, int remote) {
        return String.format("%04X:%04X", local, remote);
    }

    private void watch() {
        try {
            while (waited()) {
                look();
            }
        } catch (InterruptedException end) {
            // Nothing of its own is left.
        } catch (IOException | RuntimeException failure) {
            Logger.getLogger(Clients.class.getName()).warning("the system does not tell which "
                    + "clients of the server of SQL have gone, so that their statements run to "
                    + "their ends: " + failure);
        }
    }

    /** Waits as long as a run may take unwatched; false at the end. */
    private synchronized boolean waited() throws InterruptedException {
        if (!closed) {
            wait(LOOK_MS);
        }
        return !closed;
    }

    private void look() throws IOException {
        List<Asking> before = running.stream().filter(each -> each.seen).toList();
        running.forEach(each -> each.seen = true);
        if (before.isEmpty()) {
            return;
        }
        Set<String> open = open();
        for (Asking each : before) {
            if (!open.contains(each.ports)) {
                each.run.cancel();
            }
        }
    }

    /** Ports of the connections that are open, those of this end first. */
    private static Set<String> open() throws IOException {
        Set<String> open = new HashSet<>();
        for (Path each : CONNECTIONS) {
            try {
                add(Files.readAllLines(each), open);
            } catch (NoSuchFileException none) {
                // A system without this version of the protocol.
            }
        }
        return open;
    }

    /** Lines of the system, of which each has numbers, both ends and a state. */
    public static void add(List<String> lines, Set<String> open) {
        for (String line : lines) {
            String[] words = line.strip().split("\\s+");
            if (words.length > 3 && words[3].equals(ESTABLISHED)) {
                open.add(port(words[1]) + ":" + port(words[2]));
            }
        }
    }

    private static String port(String end) {
        return end.substring(end.lastIndexOf(':') + 1);
    }

    @Override
    public void close() {
        synchronized (this) {
            closed = true;
            notifyAll();
        }
    }
}
