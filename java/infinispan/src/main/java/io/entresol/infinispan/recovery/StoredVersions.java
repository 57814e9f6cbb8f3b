package io.entresol.infinispan.recovery;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.infinispan.commands.write.EvictCommand;
import org.infinispan.commands.write.InvalidateCommand;
import org.infinispan.commands.write.RemoveExpiredCommand;
import org.infinispan.commands.write.WriteCommand;
import org.infinispan.container.entries.MVCCEntry;
import org.infinispan.container.impl.EntryFactory;
import org.infinispan.context.InvocationContext;
import org.infinispan.distribution.DistributionManager;
import org.infinispan.distribution.ch.KeyPartitioner;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.persistence.util.EntryLoader;

/**
 * The versions of entries that are only on flash. If an entry is not in the memory of the primary
 * owner, and a write does not need the old value, Infinispan takes the entry for new and begins
 * again with the first version.
 */
final class StoredVersions {
    /** Null in a cache of one node. */
    private final DistributionManager distribution;
    private final KeyPartitioner segments;
    private final EntryFactory entries;
    private final EntryLoader<?, ?> loader;

    StoredVersions(ComponentRegistry registry, EntryLoader<?, ?> loader) {
        this.loader = loader;
        distribution = registry.getDistributionManager();
        segments = registry.getComponent(KeyPartitioner.class);
        entries = registry.getComponent(EntryFactory.class);
    }

    /** Others are about what is in memory, or about what has ended. */
    static boolean isOfUsers(WriteCommand write) {
        return !(write instanceof EvictCommand || write instanceof InvalidateCommand
                || write instanceof RemoveExpiredCommand);
    }

    /**
     * Loads into the context what a write is about to change. Null if the primary owner knows all
     * versions that it is to go on from.
     */
    CompletionStage<Void> load(InvocationContext context, WriteCommand write) {
        CompletionStage<Void> all = null;
        for (Object key : write.getAffectedKeys()) {
            if (!(context.lookupEntry(key) instanceof MVCCEntry<?, ?> entry)
                    || entry.isChanged()) {
                continue;
            }
            int segment = segments.getSegment(key);
            if (entry.getValue() != null) {
                // Infinispan takes what it loads for what there was not.
                entry.setCreated(false);
            } else if (isPrimary(segment) && !entry.skipLookup()) {
                CompletionStage<Void> before =
                        all == null ? CompletableFuture.completedFuture(null) : all;
                // One after another: the context is nobody's to change at the same time.
                all = before.thenCompose(done -> loader.loadAndStoreInDataContainer(
                        context, key, segment, write)).thenAccept(there -> {
                            if (there != null) {
                                entries.wrapExternalEntry(context, key, there, true, true);
                                entry.setCreated(false);
                            }
                        });
            }
        }
        return all;
    }

    private boolean isPrimary(int segment) {
        return distribution == null || distribution.getCacheTopology()
                .getSegmentDistribution(segment).isPrimary();
    }
}
