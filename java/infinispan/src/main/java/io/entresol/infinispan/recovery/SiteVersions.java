package io.entresol.infinispan.recovery;

import java.util.concurrent.CompletionStage;
import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.write.WriteCommand;
import org.infinispan.context.InvocationContext;
import org.infinispan.context.impl.FlagBitSets;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.persistence.util.EntryLoader;

/**
 * Makes a change of an entry that is only on flash go on from its version there, in a cache whose
 * changes go to other sites.
 *
 * <p>A write that needs no old value looks into no store. Its version would be the next one that
 * the node knows of, which after a kill is the first. The other site would then take the change for
 * older than its entry, and drop it.
 */
public final class SiteVersions extends BaseAsyncInterceptor {
    /** Of writes that come with a version of their own. */
    private static final long VERSIONED = FlagBitSets.PUT_FOR_STATE_TRANSFER
            | FlagBitSets.IRAC_UPDATE | FlagBitSets.IRAC_STATE;

    private final StoredVersions versions;

    /** For a cache whose stores {@code loader} reads. */
    public SiteVersions(ComponentRegistry registry, EntryLoader<?, ?> loader) {
        versions = new StoredVersions(registry, loader);
    }

    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        if (!(command instanceof WriteCommand write) || write.hasAnyFlag(VERSIONED)
                || !StoredVersions.isOfUsers(write)) {
            return invokeNext(context, command);
        }
        CompletionStage<Void> loaded = versions.load(context, write);
        // What cannot be read is replaced or removed nevertheless.
        return loaded == null ? invokeNext(context, command)
                : asyncInvokeNext(context, command, loaded.exceptionally(unreadable -> null));
    }
}
