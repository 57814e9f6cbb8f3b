package io.entresol.infinispan.recovery;

import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.write.RemoveCommand;
import org.infinispan.container.entries.CacheEntry;
import org.infinispan.context.InvocationContext;
import org.infinispan.context.impl.FlagBitSets;
import org.infinispan.distribution.DistributionManager;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.interceptors.InvocationFinallyAction;

/**
 * Makes a removal reach the store of every owner, whatever the primary owner finds in memory. If an
 * entry is not in the context, Infinispan assumes that no node has it, and does not pass the
 * removal to its own store and the backups. But a removal with {@code IGNORE_RETURN_VALUES} looks
 * into no store, and a put that the primary's store refused may be on a backup, which got it first.
 *
 * <p>It stands between loading and writing interceptors: loads are done, and writes are still to be
 * decided.
 */
public final class Removals extends BaseAsyncInterceptor {
    /** Says that nobody knows whether there was something: then all owners are told. */
    private static final long UNKNOWN = FlagBitSets.SKIP_CACHE_LOAD;

    private final DistributionManager distribution;

    /** Should it be tried again, that is decided again. */
    private final InvocationFinallyAction<RemoveCommand> known = (context, command, value, failure) ->
            command.setFlagsBitSet(command.getFlagsBitSet() & ~UNKNOWN);

    /**
     * For the caches of one configuration.
     *
     * @param distribution who owns what; null in a cache of one node
     */
    public Removals(DistributionManager distribution) {
        this.distribution = distribution;
    }

    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        // Not of its subclasses: expired and evicted entries are removed otherwise.
        if (command.getClass() != RemoveCommand.class) {
            return invokeNext(context, command);
        }
        RemoveCommand removal = (RemoveCommand) command;
        CacheEntry<?, ?> found = context.lookupEntry(removal.getKey());
        if (context.isInTxScope() || removal.isConditional() || removal.hasAnyFlag(UNKNOWN)
                || found == null || !decides(removal)) {
            return invokeNext(context, command);
        }
        // A command that is tried again has not forgotten that it found nothing before.
        if (found.getValue() != null && !removal.hasAnyFlag(FlagBitSets.COMMAND_RETRY)) {
            return invokeNext(context, command);
        }
        removal.addFlags(UNKNOWN);
        return invokeNextAndFinally(context, removal, known);
    }

    /** Others hand it over to the primary owner, which has yet to look for what it returns. */
    private boolean decides(RemoveCommand removal) {
        return distribution == null || removal.hasAnyFlag(FlagBitSets.CACHE_MODE_LOCAL)
                || distribution.getCacheTopology()
                .getSegmentDistribution(removal.getSegment()).isPrimary();
    }
}
