package io.entresol.grid;

import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.configuration.cache.BackupConfiguration;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.IndexStartupMode;
import org.infinispan.configuration.cache.IndexStorage;
import org.infinispan.conflict.MergePolicy;
import org.infinispan.eviction.EvictionStrategy;
import org.infinispan.partitionhandling.PartitionHandling;

/**
 * A request for a cache.
 *
 * @param template where its entries are kept, and on how many nodes
 * @param encoding the form of keys and values
 * @param flash its store; null: the cache is in RAM
 * @param entriesInHeap how many entries Java's heap keeps beside the store; empty: no limit
 * @param indexed types whose declared fields are indexed
 * @param databases numbers with which RESP clients select the cache
 * @param otherSite the site that changes go to; null: none
 */
public record Deployment(Template template, Encoding encoding, Flash flash,
        OptionalLong entriesInHeap, List<String> indexed, List<Integer> databases,
        String otherSite) {
    /** Infinispan's number for a name that somebody else's cache has. */
    private static final String EXISTS = "ISPN000507";
    /** And for a cache that the cluster was told to have, and that no node has. */
    private static final String LACKS = "ISPN000436";
    private static final String LOGGED = "why is in server/log/node.log of the node's folder";
    private static final int COMMIT_MILLIS = 60_000;
    /** Java's heap holds so much of additions before they become a piece of an index. */
    private static final int INDEX_BUFFER_MB = 32;
    private static final long PATIENCE_SECONDS = 30;
    private static final long PAUSE_MILLIS = 100;

    /**
     * Options of {@code <entresol-store>}; null: as the store has it.
     *
     * @param capacity size of a file that is made
     * @param memory cap of index, buffers and cached values, outside of Java's heap
     * @param devices files or block devices
     * @param striped whether to use all of the devices, and not the first that exists
     * @param durability what an acknowledged write survives
     * @param compression how values are compressed
     */
    public record Flash(String capacity, String memory, String devices, boolean striped,
            String durability, String compression, boolean recovering) {
        private void apply(ConfigurationBuilder builder) {
            EntresolStoreConfigurationBuilder store = builder.persistence().passivation(false)
                    .addStore(EntresolStoreConfigurationBuilder.class);
            if (capacity != null) {
                store.capacity(capacity);
            }
            if (memory != null) {
                store.memory(memory);
            }
            if (devices != null) {
                store.devices(devices);
            }
            if (striped) {
                store.selection("stripe");
            }
            if (durability != null) {
                store.durability(durability);
            }
            if (compression != null) {
                store.compression(compression);
            }
            if (recovering) {
                store.recovery(Boolean.TRUE.toString());
                builder.clustering().partitionHandling()
                        .whenSplit(PartitionHandling.DENY_READ_WRITES)
                        .mergePolicy(MergePolicy.NONE);
            }
        }
    }

    /** Makes the cache on all nodes, or on none; there must be none of this name. */
    public void deploy(Rest rest, String name) {
        make(rest, name, xml(name));
    }

    /** The same, of a cache in RAM, over a store of Infinispan's that {@code element} gives. */
    public void deployOn(Rest rest, String name, String element) {
        String end = "</distributed-cache>";
        try {
            make(rest, name, xml(name).replace(end,
                    "<persistence passivation=\"false\">" + element + "</persistence>" + end));
        } catch (GridException refused) {
            throw element.contains("rocksdb") ? new GridException(refused.getMessage()
                    + ". If the nodes lack Infinispan's RocksDB store: mvn -f java/pom.xml install"
                    + " -DskipTests -Procksdb, then start them again", refused) : refused;
        }
    }

    /** Refuses a name that a cache has, as its own or as a further one. */
    static void requireFree(Rest rest, String name) {
        if (rest.exists(Rest.cache(name))) {
            Caches.named(rest, name).ifPresent(cache -> {
                throw new GridException("cache '" + cache + "' has '" + name + "' as a further"
                        + " name, an alias or a database; choose another name");
            });
            throw new GridException("cache '" + name + "' is there already; choose another name,"
                    + " or drop it and its entries: entresol-grid undeploy " + name);
        }
    }

    private static void make(Rest rest, String name, String xml) {
        requireFree(rest, name);
        try {
            post(rest, name, xml);
        } catch (RefusedException refused) {
            // Infinispan's answer has the outermost of the causes only, the name of a component.
            boolean isThere = refused.getMessage().contains(EXISTS);
            List<Json> nodes = isThere ? List.of() : look(rest, name);
            String reasons = reasons(nodes);
            throw new GridException((reasons.isEmpty() ? refused.getMessage() + "; " + LOGGED
                    : "cache '" + name + "' cannot be made: " + reasons)
                    + (isThere ? "" : undone(rest, name, nodes)), refused);
        } catch (LateException late) {
            throw new GridException("cache '" + name + "' is still being made, and goes on to be:"
                    + " node " + rest.server() + " had not answered after a minute. Whether it runs"
                    + " says entresol-grid list; why it takes so long, server/log/node.log of each"
                    + " node's folder; to take it back: entresol-grid undeploy " + name, late);
        }
        // Infinispan tells of the node that was asked only.
        List<Json> nodes = look(rest, name);
        List<String> lacking = lacking(nodes);
        if (!lacking.isEmpty()) {
            String reasons = reasons(nodes);
            throw new GridException("cache '" + name + "' does not run on "
                    + String.join(", ", lacking) + ": " + (reasons.isEmpty() ? LOGGED : reasons)
                    + undone(rest, name, nodes));
        }
    }

    /** Returns why nodes could not open their stores; empty if none says so. */
    private static String reasons(List<Json> nodes) {
        return nodes.stream().filter(node -> node.has(UndoTask.REASON)
                        && !node.at(UndoTask.RUNS).asBoolean())
                .map(node -> "node " + node.at("node").asString() + " says: "
                        + node.at(UndoTask.REASON).asString())
                .collect(Collectors.joining("; "));
    }

    /**
     * Until the cluster has forgotten a former cache of the name, which its nodes have taken back,
     * Infinispan makes none and complains that there is none. It says the same of one that was made
     * and is gone: then the nodes have attempted it.
     */
    private static void post(Rest rest, String name, String xml) {
        long begun = System.nanoTime();
        String former = null;
        while (true) {
            try {
                rest.post(Rest.cache(name), "application/xml", xml);
                return;
            } catch (RefusedException refused) {
                boolean isLate = System.nanoTime() - begun
                        > TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
                if (!refused.getMessage().contains(LACKS) || isLate) {
                    throw refused;
                }
                String now = attempts(look(rest, name));
                if (former != null && !former.equals(now)) {
                    throw refused;
                }
                former = now;
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(PAUSE_MILLIS));
        }
    }

    /** The nodes that could not make the cache; else those that do not run it. */
    private static List<String> lacking(List<Json> nodes) {
        // Those take it back from all, and may have done so.
        List<String> failed = those(nodes, UndoTask.FAILED, true);
        return failed.isEmpty() ? those(nodes, UndoTask.RUNS, false) : failed;
    }

    private static List<Json> look(Rest rest, String name) {
        return Caches.say(rest, UndoTask.path(name));
    }

    private static List<String> those(List<Json> nodes, String what, boolean say) {
        return nodes.stream().filter(node -> node.has(what) && node.at(what).asBoolean() == say)
                .map(node -> node.at("node").asString()).toList();
    }

    /** The latest of each node, in an order that is the same whoever answers first. */
    private static String attempts(List<Json> nodes) {
        return nodes.stream().filter(node -> node.has(UndoTask.ATTEMPT))
                .map(node -> node.at(UndoTask.ATTEMPT).asString())
                .filter(attempt -> !attempt.isEmpty()).sorted().collect(Collectors.joining(","));
    }

    /**
     * Infinispan keeps the configuration of a cache that does not start, and runs it on the nodes
     * where it does: it is taken back. One that all nodes run is somebody else's.
     */
    private static String undone(Rest rest, String name, List<Json> nodes) {
        List<String> lacking = lacking(nodes);
        if (lacking.isEmpty()) {
            return "";
        }
        String deployment = attempts(nodes);
        try {
            for (String step : new String[] {UndoTask.WITHDRAW, UndoTask.FORGET}) {
                rest.post(UndoTask.path(step, name, deployment), null, "");
            }
            List<String> makes = those(look(rest, name), UndoTask.MAKES, true);
            return ". It is deployed on no node: mend that and deploy it again"
                    + (makes.isEmpty() ? "" : ", once " + String.join(", ", makes)
                    + " has made it and dropped it");
        } catch (GridException failure) {
            return ". It could not be taken back from the others: entresol-grid undeploy " + name
                    + " (" + failure.getMessage() + ")";
        }
    }

    String xml(String name) {
        return Endpoints.xml(Map.of(name, configuration()));
    }

    /** As Infinispan takes it; complains about what Infinispan would refuse. */
    Configuration configuration() {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.clustering().cacheMode(CacheMode.DIST_SYNC).hash().numOwners(template.owners());
        builder.statistics().enable();
        encoding.apply(builder);
        if (flash != null) {
            flash.apply(builder);
        }
        entriesInHeap.ifPresent(count ->
                builder.memory().maxCount(count).whenFull(EvictionStrategy.REMOVE));
        if (!indexed.isEmpty()) {
            // The index is never older than the entries: the node makes it anew from them when it
            // starts. Infinispan's own way waits for the cache within the cache's start.
            // A commit makes nothing last in memory. It cuts the index into small pieces, which are
            // then merged. Queries see additions before a commit.
            builder.indexing().enable().storage(IndexStorage.LOCAL_HEAP)
                    .startupMode(IndexStartupMode.NONE)
                    .addIndexedEntities(indexed.toArray(String[]::new))
                    .writer().commitInterval(COMMIT_MILLIS).ramBufferSize(INDEX_BUFFER_MB);
        }
        if (!databases.isEmpty()) {
            builder.aliases(databases.stream().map(String::valueOf).toArray(String[]::new));
        }
        if (otherSite != null) {
            builder.sites().addBackup().site(otherSite)
                    .strategy(BackupConfiguration.BackupStrategy.ASYNC);
        }
        try {
            return builder.build();
        } catch (CacheConfigurationException refused) {
            StringBuilder text = new StringBuilder("the cache cannot be configured: ")
                    .append(refused.getMessage());
            for (Throwable each : refused.getSuppressed()) {
                text.append("; ").append(each.getMessage());
            }
            throw new GridException(text.toString(), refused);
        }
    }
}
