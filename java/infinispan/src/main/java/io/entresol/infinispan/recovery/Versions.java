package io.entresol.infinispan.recovery;

import java.util.Map;
import java.util.concurrent.CompletionStage;
import org.infinispan.commands.CommandsFactory;
import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.remote.ClusteredGetCommand;
import org.infinispan.commands.tx.VersionedCommitCommand;
import org.infinispan.commands.write.RemoveCommand;
import org.infinispan.commands.write.WriteCommand;
import org.infinispan.container.entries.CacheEntry;
import org.infinispan.container.entries.InternalCacheEntry;
import org.infinispan.container.entries.InternalCacheValue;
import org.infinispan.container.entries.MVCCEntry;
import org.infinispan.container.versioning.IncrementableEntryVersion;
import org.infinispan.context.InvocationContext;
import org.infinispan.context.impl.FlagBitSets;
import org.infinispan.context.impl.TxInvocationContext;
import org.infinispan.distribution.DistributionInfo;
import org.infinispan.distribution.DistributionManager;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.interceptors.distribution.RemoteGetSingleKeyCollector;
import org.infinispan.metadata.impl.PrivateMetadata;
import org.infinispan.persistence.util.EntryLoader;
import org.infinispan.remoting.rpc.RpcManager;

/**
 * Makes optimistic transactions compare the versions of the last commits.
 *
 * <p>On backups Infinispan gives an entry the version of its commit only after the entry is in the
 * store, which so gets the former version. An entry read from there would have another version than
 * the primary owner's, and every change by the backup would fail; or it would have the same version
 * as before, and a change would go unnoticed. So the version is given before.
 *
 * <p>Infinispan takes an entry that is not in the memory of the primary owner for new, and begins
 * again with the first version. Other transactions may have read just that version, and would
 * change the entry as if nobody else had. So the entry is loaded first.
 *
 * <p>A transaction on a backup reads the backup's entry. A key that only the backup has, as after a
 * put that the primary's store refused, could never be removed there. So the primary owner is asked
 * first. If it has no entry, the key counts as absent, as without transactions, and all owners get
 * the removal.
 */
public final class Versions extends BaseAsyncInterceptor {
    private static final long HERE = FlagBitSets.CACHE_MODE_LOCAL | FlagBitSets.SKIP_REMOTE_LOOKUP
            | FlagBitSets.SKIP_OWNERSHIP_CHECK;
    /** Of writes that go on from nothing. */
    private static final long UNREAD =
            FlagBitSets.SKIP_CACHE_LOAD | FlagBitSets.PUT_FOR_STATE_TRANSFER;
    private static final long NONE = 0;

    /** Null in a cache of one node. */
    private final DistributionManager distribution;
    private final CommandsFactory commands;
    private final RpcManager others;
    private final StoredVersions stored;

    /** For a cache that has versions, whose stores {@code loader} reads. */
    public Versions(ComponentRegistry registry, EntryLoader<?, ?> loader) {
        stored = new StoredVersions(registry, loader);
        distribution = registry.getDistributionManager();
        commands = registry.getComponent(CommandsFactory.class);
        others = registry.getComponent(RpcManager.class);
    }

    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        if (command instanceof VersionedCommitCommand commit) {
            give((TxInvocationContext<?>) context, commit);
        }
        if (!context.isInTxScope() || !(command instanceof WriteCommand write)
                || write.hasAnyFlag(UNREAD) || !StoredVersions.isOfUsers(write)) {
            return invokeNext(context, command);
        }
        CompletionStage<Void> read = stored.load(context, write);
        if (read == null && distribution != null && context.isOriginLocal()
                && write instanceof RemoveCommand removal) {
            read = compared((TxInvocationContext<?>) context, removal);
        }
        return read == null ? invokeNext(context, command)
                : asyncInvokeNext(context, command, read);
    }

    private static void give(TxInvocationContext<?> context, VersionedCommitCommand commit) {
        Map<Object, IncrementableEntryVersion> versions = commit.getUpdatedVersions();
        if (versions != null) {
            versions.forEach((key, version) -> {
                CacheEntry<?, ?> entry = context.lookupEntry(key);
                if (entry != null) {
                    entry.setInternalMetadata(PrivateMetadata.getBuilder(
                            entry.getInternalMetadata()).entryVersion(version).build());
                }
            });
        }
    }

    /** Null if the primary owner has nothing to say. */
    private CompletionStage<Void> compared(TxInvocationContext<?> context, RemoveCommand removal) {
        Object key = removal.getKey();
        boolean isRead = context.lookupEntry(key) instanceof MVCCEntry<?, ?> entry
                && entry.getValue() != null && !entry.isChanged()
                && !context.getCacheTransaction().getVersionsRead().containsKey(key);
        DistributionInfo owners = distribution.getCacheTopology()
                .getSegmentDistribution(removal.getSegment());
        if (!isRead || removal.hasAnyFlag(HERE) || owners.isPrimary() || !owners.isReadOwner()) {
            return null;
        }
        CacheEntry<?, ?> found = context.lookupEntry(key);
        ClusteredGetCommand get =
                commands.buildClusteredGetCommand(key, owners.segmentId(), NONE);
        get.setTopologyId(removal.getTopologyId());
        get.setWrite(true);
        return others.invokeCommand(owners.primary(), get, new RemoteGetSingleKeyCollector(),
                others.getSyncRpcOptions()).thenAccept(answer -> take((MVCCEntry<?, ?>) found,
                        (InternalCacheValue<?>) answer.getResponseValue()));
    }

    @SuppressWarnings("unchecked")
    private static <V> void take(MVCCEntry<?, V> found, InternalCacheValue<?> primarys) {
        InternalCacheEntry<?, ?> entry =
                primarys == null ? null : primarys.toInternalCacheEntry(found.getKey());
        found.setValue(entry == null ? null : (V) entry.getValue());
        found.setMetadata(entry == null ? null : entry.getMetadata());
        found.setInternalMetadata(entry == null ? null : entry.getInternalMetadata());
        found.updatePreviousValue();
    }
}
