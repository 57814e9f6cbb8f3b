package io.entresol.grid;

import io.entresol.StoreConsole;
import io.entresol.infinispan.Privileged;
import io.entresol.jdbc.SqlServer;
import java.io.Serializable;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.infinispan.commons.CacheException;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.configuration.global.TransportConfiguration;
import org.infinispan.entresol.Trusted;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.remoting.transport.Address;
import org.infinispan.security.AuthorizationPermission;
import org.infinispan.security.Security;
import org.infinispan.security.impl.Authorizer;
import org.jboss.logging.Logger;

/**
 * The console of the node's flash stores. Figures are taken once a second, for its charts; the
 * other nodes are asked for theirs only while somebody looks.
 */
final class StoresSite implements SqlServer.Site, AutoCloseable {
    private static final Logger LOG = Logger.getLogger(StoresSite.class);
    /** What a page may do: use style and script of this server, and ask it. */
    private static final Map<String, String> HEADERS = Map.of(
            "Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self';"
                    + " connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none';"
                    + " frame-ancestors 'none'",
            "Referrer-Policy", "no-referrer");
    private static final String HTML = "text/html; charset=utf-8";
    /** A page does not wait longer for other nodes. */
    private static final long PATIENCE_SECONDS = 2;
    /** What they said is new enough for others who look. */
    private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final EmbeddedCacheManager manager;
    private final String node;
    private final StoreConsole console;
    private final Latencies.OfStores latencies = new Latencies.OfStores();
    private final long begun = System.nanoTime();
    private final ScheduledExecutorService sampling = Executors.newSingleThreadScheduledExecutor(
            task -> {
                Thread thread = new Thread(task, "figures of stores");
                thread.setDaemon(true);
                return thread;
            });
    private String told = "";
    private Json nodes = Json.array();
    private long asked = begun - FRESH_NANOS;

    StoresSite(EmbeddedCacheManager manager) {
        this.manager = manager;
        node = Privileged.getCacheManagerConfiguration(manager).transport().nodeName();
        console = new StoreConsole("Stores of node " + node);
        sampling.scheduleAtFixedRate(this::sample, 0, 1, TimeUnit.SECONDS);
    }

    private void sample() {
        try {
            console.take(Trusted.call(() -> NodeStores.figures(manager, latencies)));
            told = "";
        } catch (RuntimeException failure) {
            // As while a cache stops; charts have a gap then.
            String said = String.valueOf(failure.getMessage());
            if (!said.equals(told)) {
                told = said;
                LOG.debug("The console of stores has no figures of this second", failure);
            }
        }
    }

    @Override
    public Optional<SqlServer.Page> page(String path, Map<String, String> parameters) {
        return Optional.ofNullable(switch (path) {
            case "/" -> look(StoreConsole.Part.PAGE, parameters);
            case "/console/now" -> look(StoreConsole.Part.NOW, parameters);
            case "/console/style.css" -> new SqlServer.Page("text/css; charset=utf-8", Map.of(),
                    console.style());
            case "/console/script.js" -> new SqlServer.Page("text/javascript; charset=utf-8",
                    Map.of(), console.script());
            default -> null;
        });
    }

    /** For users who may look at figures; where there are no users it is for all. */
    private SqlServer.Page look(StoreConsole.Part part, Map<String, String> parameters) {
        if (Security.getSubject() != null) {
            Privileged.getComponent(manager, Authorizer.class)
                    .checkPermission(Security.getSubject(), AuthorizationPermission.MONITOR);
        }
        TransportConfiguration transport =
                Privileged.getCacheManagerConfiguration(manager).transport();
        Json look = Json.object("node", node, "cluster", transport.clusterName(),
                "uptime_seconds", TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - begun),
                "nodes", nodes(),
                "foot", "Caches, counters and clients are in Infinispan's own console, at the port"
                        + " of Hot Rod and REST; its /metrics has these figures, too.");
        for (String name : List.of("span", "cache")) {
            if (parameters.containsKey(name)) {
                look.set(name, parameters.get(name));
            }
        }
        String stores = NodeStores.look(manager, parameters.get("cache"));
        String text = "{\"stores\":" + stores + "," + look.toString().substring(1);
        return new SqlServer.Page(HTML, HEADERS, console.show(part, text));
    }

    /** What all nodes of the view say in short, by their names. */
    private synchronized Json nodes() {
        if (System.nanoTime() - asked > FRESH_NANOS) {
            nodes = ask();
            asked = System.nanoTime();
        }
        return nodes;
    }

    private Json ask() {
        Map<Address, Json> said = new ConcurrentHashMap<>();
        List<Address> view = manager.getMembers() == null ? List.of() : manager.getMembers();
        try {
            if (view.size() > 1) {
                Privileged.getClusterExecutor(manager)
                        .filterTargets(each -> !each.equals(manager.getAddress()))
                        .timeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
                        .submitConsumer(saying(), (address, text, failure) -> {
                            if (failure == null) {
                                said.put(address, Json.read(text));
                            } else {
                                LOG.debugf(failure, "Node %s does not say how its stores are",
                                        address);
                            }
                        }).join();
            }
        } catch (CompletionException | CacheException failure) {
            LOG.debug("The other nodes do not say how their stores are", failure);
        }
        Json all = Json.array(said(manager));
        for (Address address : view) {
            if (!address.equals(manager.getAddress())) {
                all.add(said.getOrDefault(address, Json.object("node", String.valueOf(address),
                        "failed", "it did not answer within " + PATIENCE_SECONDS + " s")));
            }
        }
        return Json.make(all.asJsonList().stream().sorted(
                Comparator.comparing(each -> each.at("node").asString())).toList());
    }

    /** Runs on each node. */
    private static Function<EmbeddedCacheManager, String> saying() {
        return (Function<EmbeddedCacheManager, String> & Serializable)
                manager -> Trusted.call(() -> said(manager).toString());
    }

    private static Json said(EmbeddedCacheManager manager) {
        return Json.object(
                "node", Privileged.getCacheManagerConfiguration(manager).transport().nodeName(),
                "page", place(System::getProperty), "stores", NodeStores.inShort(manager));
    }

    /** Where the page of a node is: at the address of its cluster if its endpoints are at all. */
    static String place(UnaryOperator<String> plan) {
        Json facts = Node.facts(plan);
        String bind = facts.at("address").asString();
        try {
            String host = InetAddress.getByName(bind).isAnyLocalAddress()
                    ? plan.apply("jgroups.bind.address") : bind;
            return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":"
                    + facts.at("sql").asInteger();
        } catch (UnknownHostException unknown) {
            return bind + ":" + facts.at("sql").asInteger();
        }
    }

    @Override
    public void close() {
        sampling.shutdownNow();
    }
}
