package io.entresol.infinispan;

import org.infinispan.commands.FlagAffectedCommand;
import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.write.WriteCommand;
import org.infinispan.context.InvocationContext;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.interceptors.InvocationStage;

/**
 * Has what a read loads count as being loaded until the read has ended: only then it is certain that
 * Infinispan has put it into memory. A store cannot tell: it has answered before the value is made
 * an object, and before memory takes it. See {@link Loads}.
 *
 * <p>What a write loads is over before it changes the store, which it would wait for else. Within a
 * transaction it changes nothing yet: there it loads as a read does, before any lock is taken.
 */
final class LoadingReads extends BaseAsyncInterceptor {
    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        boolean reads = command instanceof FlagAffectedCommand
                && (context.isInTxScope() || !(command instanceof WriteCommand));
        Reader reader = Reader.ofThread();
        Reader.Read outer = reader.enter(reads);
        // It throws nothing: failures are stages, too.
        Object result = invokeNext(context, command);
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
}
