package io.entresol.grid;

import io.entresol.grid.resp.RespFront;
import io.entresol.infinispan.Privileged;
import io.entresol.jdbc.SqlServer;
import io.entresol.jdbc.TlsFiles;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import javax.net.ssl.SSLParameters;
import javax.security.auth.Subject;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.lifecycle.ComponentStatus;
import org.infinispan.persistence.spi.PersistenceException;
import org.infinispan.security.GroupPrincipal;
import org.infinispan.server.ExitStatus;
import org.infinispan.server.Server;
import org.infinispan.server.configuration.ServerConfiguration;
import org.infinispan.server.configuration.security.RealmConfiguration;
import org.jboss.logging.Logger;
import org.wildfly.security.auth.server.RealmUnavailableException;
import org.wildfly.security.auth.server.SecurityDomain;
import org.wildfly.security.auth.server.SecurityIdentity;
import org.wildfly.security.evidence.PasswordGuessEvidence;

/**
 * The process of a node: an Infinispan server on the files that {@link NodeFolder#prepare} wrote.
 * It prints one line on the standard output, once it serves or cannot serve: a JSON object.
 */
public final class Node {
    /** With this argument the node stops when its standard input ends, as its launcher does. */
    static final String LIFELINE = "--lifeline";
    /** Names of the plan: which realm is asked, and the one that asks nobody. */
    static final String REALM = "entresol.realm";
    static final String OPEN = "open";
    static final String USERS = "users";
    /** Among what a node says of itself, if its endpoints speak TLS. */
    static final String TLS = "tls";
    /** The same: the site that its changes may go to. */
    static final String OTHER_SITE = "other_site";
    /**
     * How long Infinispan's {@code FileWatcher} sleeps, in milliseconds: the server waits at its end
     * until it has slept, for up to two seconds. It offers no other way to have it end sooner but to
     * interrupt whichever threads have its name, and reads this once, when the class is loaded.
     */
    private static final String WATCHER_SLEEP = "infinispan.filewatcher.interval";
    private static final String WATCHER_SLEEP_MILLIS = "100";
    /** How long endpoints may take once the caches are there. */
    private static final long ENDPOINTS_SECONDS = 60;

    private final Server server;
    private final CompletableFuture<ExitStatus> exit;
    private volatile SqlServer sql;
    private volatile StoresSite stores;

    private Node(NodeFolder folder, Properties plan) {
        RespFront.addCommands();
        server = new GridServer(folder.server().toFile(),
                List.of(Path.of("stack.xml"), Path.of("node.xml"), Path.of("caches.xml")), plan);
        exit = server.run();
    }

    /** Runs the node of the folder named until it is told to stop. */
    public static void main(String[] arguments) throws Exception {
        NodeFolder folder = new NodeFolder(Path.of(arguments[0]));
        Properties plan = folder.plan();
        // JGroups and the diagnostics look here, not into the server's properties.
        plan.forEach((key, value) -> System.setProperty((String) key, (String) value));
        if (System.getProperty(WATCHER_SLEEP) == null) {
            System.setProperty(WATCHER_SLEEP, WATCHER_SLEEP_MILLIS);
        }
        System.setProperty("log4j2.configurationFile",
                folder.configuration().resolve("log4j2.xml").toUri().toString());
        PrintStream launcher = System.out;
        System.setOut(System.err);
        try {
            Node node = new Node(folder, plan);
            Runtime.getRuntime().addShutdownHook(
                    new Thread(() -> node.stop(folder), "stop"));
            if (arguments.length > 1 && arguments[1].equals(LIFELINE)) {
                node.stopWhenInputEnds();
            }
            node.awaitRunning();
            SiteBridge.open();
            RespFront.standBefore(node.server.getProtocolServers().values());
            node.serveSql(plan);
            for (NodeTls each : NodeTls.values()) {
                each.of(plan::getProperty)
                        .ifPresent(tls -> each.watch(tls, folder.configuration()));
            }
            Json facts = facts(plan::getProperty);
            folder.writeRunning(facts);
            launcher.println(facts);
            ClassArchive.makeBehind();
            node.exit.join();
            System.exit(0);
        } catch (Exception failure) {
            launcher.println(Json.object("error", reason(failure)));
            // Not on a terminal, where the launcher's sentence is to be found.
            Logger.getLogger(Node.class).error("This node does not start", failure);
            folder.removePid();
            // Half a server keeps threads that would hold the process.
            Runtime.getRuntime().halt(1);
        }
    }

    /** By JDBC, to those whom the other endpoints let in, and the console of stores beside it. */
    private void serveSql(Properties plan) throws Exception {
        String realm = plan.getProperty(REALM);
        Optional<TlsFiles> tls = NodeTls.CLIENTS.of(plan::getProperty);
        SSLParameters demanded = new SSLParameters();
        demanded.setNeedClientAuth(tls.map(TlsFiles::authorities).isPresent());
        stores = new StoresSite(server.getCacheManager());
        sql = SqlServer.start(server.getCacheManager(),
                InetAddress.getByName(plan.getProperty("entresol.bind")),
                ports(plan::getProperty).sql(), new SqlServer.Access(
                        realm.equals(OPEN) ? null : new Users(),
                        tls.isPresent() ? realm(realm).serverSSLContext() : null, demanded),
                stores);
    }

    private RealmConfiguration realm(String name) {
        return Privileged.getCacheManagerConfiguration(server.getCacheManager())
                .module(ServerConfiguration.class).security().realms().getRealm(name);
    }

    /** Those of Infinispan's realm, with what it takes for their roles. */
    private final class Users implements SqlServer.Users {
        @Override
        public boolean know(String name, String password) {
            return login(name, password) != null;
        }

        @Override
        public Subject login(String name, String password) {
            SecurityDomain domain = realm(USERS).serverSecurityRealm().getSecurityDomain();
            try {
                SecurityIdentity user = domain.authenticate(name,
                        new PasswordGuessEvidence(password.toCharArray()));
                Subject subject = new Subject();
                subject.getPrincipals().add(user.getPrincipal());
                user.getRoles().forEach(role ->
                        subject.getPrincipals().add(new GroupPrincipal(role)));
                return subject;
            } catch (RealmUnavailableException | SecurityException refused) {
                return null;
            }
        }
    }

    private void stop(NodeFolder folder) {
        try {
            new Leave(server, exit, folder).await();
        } catch (RuntimeException failure) {
            Logger.getLogger(Node.class).error("This node leaves without having waited", failure);
        }
        if (stores != null) {
            stores.close();
        }
        if (sql != null) {
            sql.close();
        }
        server.getExitHandler().exit(ExitStatus.SERVER_SHUTDOWN);
        exit.handle((status, failure) -> null).join();
        folder.removePid();
    }

    /** Until clients are served; the server itself swallows what fails after its caches stand. */
    private void awaitRunning() throws Exception {
        CompletableFuture.anyOf(server.cacheManagerStart().toCompletableFuture(), exit).get();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(ENDPOINTS_SECONDS);
        while (server.getStatus() != ComponentStatus.RUNNING) {
            if (exit.isDone()) {
                exit.get();
                throw new IllegalStateException("the server stopped while it started");
            }
            if (System.nanoTime() > deadline) {
                throw new TimeoutException("an endpoint did not start within " + ENDPOINTS_SECONDS
                        + " s");
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(10));
        }
    }

    /** Any byte before the end means the whole cluster. */
    private void stopWhenInputEnds() {
        Thread thread = new Thread(() -> {
            try {
                if (System.in.read() >= 0) {
                    server.clusterStop();
                    return;
                }
            } catch (IOException gone) {
                // As good as its end.
            }
            System.exit(0);
        }, "lifeline");
        thread.setDaemon(true);
        thread.start();
    }

    /** What the node of this process says of itself, by the properties that it was started with. */
    static Json facts(UnaryOperator<String> plan) {
        Ports ports = ports(plan);
        Json facts = Json.object("name", plan.apply("entresol.node.name"),
                "pid", ProcessHandle.current().pid(),
                "address", plan.apply("entresol.bind"),
                "hotrod", ports.main(), "rest", ports.main(), "resp", ports.resp(),
                "memcached", ports.memcached(), "sql", ports.sql(),
                "cluster", ports.cluster());
        if (NodeTls.CLIENTS.of(plan).isPresent()) {
            facts.set(TLS, true);
        }
        String other = plan.apply("entresol.site.other");
        return other == null ? facts : facts.set(OTHER_SITE, other);
    }

    private static Ports ports(UnaryOperator<String> plan) {
        return new Ports(Integer.parseInt(plan.apply("entresol.port.offset")));
    }

    /** What a store says, as Infinispan wraps it in its components' names; else all sentences. */
    static String reason(Throwable failure) {
        Optional<Throwable> store = Stream.iterate(failure, Objects::nonNull, Throwable::getCause)
                .filter(PersistenceException.class::isInstance).findFirst();
        if (store.isPresent()) {
            return store.get().getMessage();
        }
        Throwable cause = failure;
        while (cause.getCause() != null
                && (cause.getMessage() == null || cause instanceof ExecutionException
                || cause.getMessage().contains(cause.getCause().getClass().getName()))) {
            cause = cause.getCause();
        }
        StringBuilder text = new StringBuilder(String.valueOf(cause.getMessage()));
        for (Throwable inner = cause.getCause(); inner != null; inner = inner.getCause()) {
            String more = String.valueOf(inner.getMessage());
            if (text.indexOf(more) < 0) {
                text.append(": ").append(more);
            }
        }
        return text.toString();
    }
}
