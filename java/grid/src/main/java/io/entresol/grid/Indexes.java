package io.entresol.grid;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.infinispan.AdvancedCache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.IndexStartupMode;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.query.Search;

/** Indexes in memory of caches whose entries outlive the process. */
final class Indexes {
    private Indexes() {
    }

    /** Makes the indexes of this node's entries from what the stores have. */
    static void makeAnew(EmbeddedCacheManager manager) {
        List<CompletableFuture<Void>> all = new ArrayList<>();
        for (String name : manager.getCacheNames()) {
            Configuration configuration = manager.getCacheConfiguration(name);
            if (configuration != null && configuration.indexing().enabled()
                    && configuration.indexing().startupMode() == IndexStartupMode.NONE
                    && configuration.persistence().usingStores()) {
                all.add(reindex(manager.getCache(name).getAdvancedCache()));
            }
        }
        all.forEach(CompletableFuture::join);
    }

    private static CompletableFuture<Void> reindex(AdvancedCache<?, ?> cache) {
        return Search.getIndexer(cache).runLocal().toCompletableFuture();
    }
}
