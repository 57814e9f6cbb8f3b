package io.entresol.infinispan;

import java.util.Collection;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.infinispan.commands.FlagAffectedCommand;
import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.tx.CommitCommand;
import org.infinispan.commands.tx.PrepareCommand;
import org.infinispan.commands.write.WriteCommand;
import org.infinispan.context.InvocationContext;
import org.infinispan.context.impl.TxInvocationContext;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.interceptors.InvocationStage;
import org.infinispan.interceptors.InvocationSuccessFunction;

/**
 * Makes an entry that a read loads count as being loaded until the read has ended, because only
 * then has Infinispan put it into memory. A store cannot know that: it has answered before the
 * value becomes an object, and before memory takes it. See {@link Loads}.
 *
 * <p>The load of a write ends before the write changes the store; otherwise the write would wait
 * for itself. Within a transaction a write changes nothing at first: it loads as a read does,
 * before it takes any lock.
 *
 * <p>With write-behind a change is complete before the store sees it. So it waits for those reads
 * here: after it is in the queue, where later loads find it, and before it is in memory.
 */
final class LoadingReads extends BaseAsyncInterceptor {
    /** Waits for who loaded keys before, of all if there are none; null without write-behind. */
    private final Function<Collection<?>, CompletionStage<Void>> behind;
    private final InvocationSuccessFunction<VisitableCommand> queued = this::queued;

    LoadingReads(Function<Collection<?>, CompletionStage<Void>> behind) {
        this.behind = behind;
    }

    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        boolean reads = command instanceof FlagAffectedCommand
                && (context.isInTxScope() || !(command instanceof WriteCommand));
        Reader reader = Reader.ofThread();
        Reader.Read outer = reader.enter(reads);
        // It throws nothing: failures are stages, too.
        Object result = behind == null ? invokeNext(context, command)
                : invokeNextThenApply(context, command, queued);
        Reader.Read read = reader.leave(outer);
        if (read == null) {
            return result;
        }
        if (result instanceof InvocationStage stage) {
            return stage.andFinally(context, command, (c, same, value, failure) -> read.end());
        }
        read.end();
        return result;
    }

    private Object queued(InvocationContext context, VisitableCommand command, Object value) {
        if (context instanceof TxInvocationContext<?> transaction) {
            boolean commits = command instanceof CommitCommand
                    || command instanceof PrepareCommand prepare && prepare.isOnePhaseCommit();
            Set<Object> keys = new HashSet<>();
            if (commits) {
                transaction.getCacheTransaction().getAllModifications()
                        .forEach(change -> keys.addAll(change.getAffectedKeys()));
            }
            return keys.isEmpty() ? value : delayedValue(behind.apply(keys), value);
        }
        // None are those of a clear.
        return command instanceof WriteCommand change
                ? delayedValue(behind.apply(change.getAffectedKeys()), value) : value;
    }
}
