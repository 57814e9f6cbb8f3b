package io.entresol.grid;

import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import org.infinispan.commons.dataconversion.internal.Json;
import org.infinispan.commons.util.ByteQuantity;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code entresol-grid deploy}. */
@Command(name = "deploy", mixinStandardHelpOptions = true,
        description = "Makes a cache on all nodes of a grid; it is there after restarts, too.",
        footer = {"", "Examples:",
            "  entresol-grid deploy prices --template flash --capacity 10GiB",
            "  entresol-grid deploy sessions --template ram,partitioned-with-backup",
            "  entresol-grid deploy accounts --template flash,partitioned-with-backup --recovery",
            "  entresol-grid deploy orders --capacity 1GiB --index shop.Order",
            "  entresol-grid deploy prices --reformat"})
final class Deploy implements Callable<Integer> {
    /** As MemoryXtend has it where nothing is said. */
    private static final int CACHE_ENTRIES_PERCENTAGE = 20;
    private static final String AVERAGE_OBJECT_SIZE = "5KB";

    @Parameters(paramLabel = "NAME", description = "the cache's name")
    private String name;

    @Option(names = "--template", paramLabel = "WORD,…", defaultValue = "flash,partitioned",
            description = "ram or flash; partitioned or partitioned-with-backup; two-sites"
                    + " (${DEFAULT-VALUE})")
    private String template;

    @Option(names = "--encoding", paramLabel = "ENCODING", defaultValue = "protostream",
            description = "protostream (objects and JSON, can be queried), bytes, text, or resp"
                    + " (${DEFAULT-VALUE})")
    private Encoding encoding;

    @Option(names = "--capacity", paramLabel = "SIZE",
            description = "flash on each node (1GiB)")
    private String capacity;

    @Option(names = "--memory", paramLabel = "SIZE", description = "memory of the store on each"
            + " node, outside of Java's heap: index, buffers and cached values (256MiB)")
    private String memory;

    @Option(names = "--devices", paramLabel = "PATH,…",
            description = "files or block devices, the same on each node (a file in its folder)")
    private String devices;

    @Option(names = "--stripe", description = "use all of the devices, not the first that exists")
    private boolean stripe;

    @Option(names = "--durability", paramLabel = "LEVEL", description = "memory, process,"
            + " flushed, periodic:MS or synced (process)")
    private String durability;

    @Option(names = "--compression", paramLabel = "NAME", description = "none, lz4 or zstd (none)")
    private String compression;

    @Option(names = "--recovery", description = "bring every acknowledged entry back after all"
            + " nodes died, and none that was removed while a node was down; the cache then serves"
            + " nobody while half of the nodes, or all copies of an entry, are gone")
    private boolean recovery;

    @Option(names = "--cache-entries-percentage", paramLabel = "N", description = "share of Java's"
            + " heap for entries that flash has too (" + CACHE_ENTRIES_PERCENTAGE + ")")
    private Integer percentage;

    @Option(names = "--average-object-size", paramLabel = "SIZE",
            description = "of an entry in the heap (" + AVERAGE_OBJECT_SIZE + ")")
    private String objectSize;

    @Option(names = "--index", paramLabel = "TYPE", split = ",",
            description = "types whose indexed fields are indexed, as their schema names them")
    private List<String> indexed = List.of();

    @Option(names = "--database", paramLabel = "N", split = ",",
            description = "numbers that RESP clients select the cache by")
    private List<Integer> databases = List.of();

    @Option(names = "--other-site", paramLabel = "SITE",
            description = "the site that changes go to (two-sites)")
    private String otherSite;

    @Option(names = "--reformat", description = "drop what undeploy --keep-data kept of the name,"
            + " and the file that a former cache left")
    private boolean reformat;

    @Option(names = "--dry-run", description = "print the configuration and deploy nothing")
    private boolean dryRun;

    @Mixin
    private Target target;

    @Override
    public Integer call() {
        Rest rest = target.rest();
        Template wanted = Template.parse(template);
        refuseContradictions(wanted);
        Deployment deployment = new Deployment(wanted, encoding, flash(wanted),
                wanted.onFlash() ? OptionalLong.of(entriesInHeap(rest)) : OptionalLong.empty(),
                indexed, databases, otherSite);
        if (dryRun) {
            System.out.println(deployment.xml(name));
            return 0;
        }
        if (wanted.onTwoSites()) {
            requireSite(rest);
        }
        OptionalLong taken = take(rest, deployment);
        report(deployment, taken, wanted.losses(
                rest.get("/v2/container").at("cluster_size").asInteger(), recovery));
        return 0;
    }

    /** Deploys the cache, and returns how many entries it has if any were kept. */
    private OptionalLong take(Rest rest, Deployment deployment) {
        Optional<Json> kept = KeepTask.kept(rest, name);
        Deployment.requireFree(rest, name);
        if (reformat) {
            if (kept.isPresent()) {
                KeepTask.drop(rest, name, kept.get());
            } else {
                KeepTask.take(rest, KeepTask.Step.DROP, name);
            }
            kept = Optional.empty();
        }
        kept.ifPresent(facts -> requireSame(facts, deployment));
        deployment.deploy(rest, name);
        return kept.isEmpty() ? OptionalLong.empty() : OptionalLong.of(Caches.size(rest, name));
    }

    /** Refuses a cache that would read the kept data as something else. */
    private void requireSame(Json facts, Deployment deployment) {
        if (deployment.flash() == null) {
            throw new GridException("data of a cache '" + name + "' on flash were kept, and the"
                    + " template is '" + template + "': deploy it on flash; or drop what was kept:"
                    + " entresol-grid undeploy " + name);
        }
        String was = facts.at(KeptData.ENCODING).asString();
        String now = KeptData.encoding(deployment.configuration());
        if (!was.equals(now)) {
            throw new GridException("data of a cache '" + name + "' were kept whose encoding is "
                    + was + ", and that of --encoding "
                    + encoding.name().toLowerCase(java.util.Locale.ROOT) + " is " + now
                    + ": name the one that it had; or drop what was kept: --reformat");
        }
    }

    private void report(Deployment deployment, OptionalLong taken, Optional<String> losses) {
        if (target.json()) {
            Json json = Json.object("deployed", name, "template", deployment.template().toString());
            taken.ifPresent(count -> json.set("entries_kept", count));
            deployment.entriesInHeap().ifPresent(count -> json.set("entries_in_heap", count));
            losses.ifPresent(what -> json.set("losses", what));
            System.out.println(json);
            return;
        }
        System.out.print("deployed " + name + " (" + deployment.template() + ")");
        deployment.entriesInHeap().ifPresent(count ->
                System.out.printf(", %,d entries of each node also in its heap", count));
        System.out.println();
        taken.ifPresent(count ->
                System.out.printf("it has the %,d entries that were kept%n", count));
        losses.ifPresent(System.out::println);
    }

    private void refuseContradictions(Template wanted) {
        Object[][] onlyOnFlash = {{"--capacity", capacity}, {"--memory", memory},
            {"--devices", devices}, {"--durability", durability}, {"--compression", compression},
            {"--recovery", recovery ? Boolean.TRUE : null},
            {"--reformat", reformat ? Boolean.TRUE : null},
            {"--cache-entries-percentage", percentage}, {"--average-object-size", objectSize}};
        for (Object[] option : onlyOnFlash) {
            if (!wanted.onFlash() && option[1] != null) {
                throw new GridException(option[0] + " is for flash, and the template is '"
                        + template + "'; leave one of them out");
            }
        }
        if (recovery && wanted.owners() < 2) {
            throw new GridException("--recovery needs a second copy of each entry, and the template"
                    + " is '" + template + "'; use --template flash,partitioned-with-backup");
        }
        if (stripe && devices == null) {
            throw new GridException("--stripe has no devices; name them: --devices PATH,…");
        }
        if (reformat && devices != null) {
            throw new GridException("--reformat drops a file of the cache's own, and --devices"
                    + " names others, which may have other data: make them empty yourself (a file: delete"
                    + " it; a device: blkdiscard -z), or leave --reformat out");
        }
        if (wanted.onTwoSites() != (otherSite != null)) {
            throw new GridException(wanted.onTwoSites()
                    ? "--template has two-sites; name the one that changes go to: --other-site SITE"
                    : "--other-site " + otherSite + " is for --template two-sites; the template is"
                            + " '" + template + "'");
        }
        if (!databases.isEmpty() && encoding != Encoding.RESP) {
            throw new GridException("--database is for --encoding resp; the encoding is "
                    + encoding.name().toLowerCase(java.util.Locale.ROOT));
        }
    }

    /**
     * Infinispan takes any, and complains of it in the log of the node only. Of the sites that are
     * there it knows on the node alone that speaks with the others.
     */
    private void requireSite(Rest rest) {
        for (Json node : Caches.tell(rest, NodeTask.NAME)) {
            if (!node.has(Node.OTHER_SITE)) {
                throw new GridException("node " + node.at("name").asString() + " belongs to no"
                        + " site; start its nodes with --site NAME --other-site " + otherSite
                        + "=HOST:7850");
            }
            String known = node.at(Node.OTHER_SITE).asString();
            if (!known.equals(otherSite)) {
                throw new GridException("--other-site is '" + otherSite + "', and the nodes"
                        + " were started with another; name that: --other-site " + known);
            }
        }
    }

    private Deployment.Flash flash(Template wanted) {
        return !wanted.onFlash() ? null : new Deployment.Flash(
                capacity, memory, devices, stripe, durability, compression, recovery);
    }

    /** MemoryXtend's rule: heap × percentage ÷ size of an object. */
    private long entriesInHeap(Rest rest) {
        int share = percentage == null ? CACHE_ENTRIES_PERCENTAGE : percentage;
        if (share < 0 || share > 100) {
            throw new GridException("--cache-entries-percentage is " + share
                    + "; expected 0 to 100");
        }
        String text = objectSize == null ? AVERAGE_OBJECT_SIZE : objectSize;
        long size;
        try {
            size = ByteQuantity.parse(text);
        } catch (IllegalArgumentException mistake) {
            throw new GridException("--average-object-size is '" + text + "'; expected a size such"
                    + " as 1700 or 5KB", mistake);
        }
        if (size < 1) {
            throw new GridException("--average-object-size is " + text + "; expected at least 1");
        }
        // A cache without a limit would keep all: one entry is the least.
        return Math.max(1, heapBytes(rest) * share / 100 / size);
    }

    private static long heapBytes(Rest rest) {
        try {
            return rest.get("/v2/server/memory").at("heap").at("max").asLong();
        } catch (ForbiddenException forAdmins) {
            return Caches.tell(rest, NodeTask.NAME).stream()
                    .mapToLong(node -> node.at(NodeTask.HEAP).asLong()).min()
                    .orElseThrow(() -> forAdmins);
        }
    }
}
