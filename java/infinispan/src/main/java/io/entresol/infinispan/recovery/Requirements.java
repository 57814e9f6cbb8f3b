package io.entresol.infinispan.recovery;

import java.util.ArrayList;
import java.util.List;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.StoreConfiguration;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.conflict.MergePolicy;
import org.infinispan.partitionhandling.PartitionHandling;

/** The configuration that a cache needs to recover from its stores. */
final class Requirements {
    private Requirements() {
    }

    /** Throws with everything that has to be changed. */
    static void check(String cache, GlobalConfiguration global, Configuration configuration,
            StoreConfiguration store, String durability) {
        List<String> wrong = new ArrayList<>();
        var clustering = configuration.clustering();
        require(wrong, clustering.cacheMode().isSynchronous(), "mode=\"SYNC\"");
        require(wrong, clustering.partitionHandling().whenSplit()
                        != PartitionHandling.ALLOW_READ_WRITES,
                "<partition-handling when-split=\"DENY_READ_WRITES\"/>, for a cache that goes on"
                        + " without the owners of some entries forgets these");
        require(wrong, clustering.partitionHandling().mergePolicy() == MergePolicy.NONE,
                "<partition-handling merge-policy=\"NONE\"/>");
        require(wrong, !configuration.transaction().transactionMode().isTransactional(),
                "<transaction mode=\"NONE\"/>");
        require(wrong, !configuration.persistence().passivation(), "passivation=\"false\"");
        require(wrong, !store.async().enabled(), "no <write-behind>");
        require(wrong, store.segmented(), "segmented=\"true\"");
        require(wrong, !store.purgeOnStartup(), "purge=\"false\"");
        require(wrong, !store.ignoreModifications(), "read-only=\"false\"");
        require(wrong, !durability.equals("memory"), "durability=\"process\" or higher");
        require(wrong, global.globalState().enabled(),
                "<global-state>, which gives nodes a lasting identity");
        if (!wrong.isEmpty()) {
            throw new CacheConfigurationException("cache " + cache
                    + ": recovery=\"true\" asks for " + String.join("; ", wrong));
        }
    }

    private static void require(List<String> wrong, boolean met, String what) {
        if (!met) {
            wrong.add(what);
        }
    }
}
