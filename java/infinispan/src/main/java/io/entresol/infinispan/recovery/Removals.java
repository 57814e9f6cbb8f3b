package io.entresol.infinispan.recovery;

import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.write.RemoveCommand;
import org.infinispan.container.entries.CacheEntry;
import org.infinispan.context.InvocationContext;
import org.infinispan.context.impl.FlagBitSets;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.interceptors.InvocationFinallyAction;

/**
 * Has backups remove what the primary owner does not have. A put that the primary's store refused may
 * be on a backup all the same, which was told first. Infinispan spares backups a removal that begins
 * on the primary owner and finds nothing there, and who reads the backup would go on to find it.
 */
public final class Removals extends BaseAsyncInterceptor {
    /** Says that nobody knows whether there was something: then backups are told. */
    private static final long UNKNOWN = FlagBitSets.SKIP_CACHE_LOAD;

    /** Should it be tried again, what there was is looked for again. */
    private final InvocationFinallyAction<RemoveCommand> known = (context, command, value, failure) ->
            command.setFlagsBitSet(command.getFlagsBitSet() & ~UNKNOWN);

    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        // Not of its subclasses: expired and evicted entries are removed otherwise.
        if (command.getClass() != RemoveCommand.class) {
            return invokeNext(context, command);
        }
        RemoveCommand removal = (RemoveCommand) command;
        CacheEntry<?, ?> found = context.lookupEntry(removal.getKey());
        if (removal.isConditional() || removal.hasAnyFlag(UNKNOWN) || !context.isOriginLocal()
                || found == null || found.getValue() != null) {
            return invokeNext(context, command);
        }
        removal.addFlags(UNKNOWN);
        return invokeNextAndFinally(context, removal, known);
    }
}
