package io.entresol.infinispan;

import org.infinispan.commands.DataCommand;
import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.write.WriteCommand;
import org.infinispan.container.entries.MVCCEntry;
import org.infinispan.context.InvocationContext;
import org.infinispan.interceptors.BaseAsyncInterceptor;

/**
 * Makes an entry that a write has just loaded count as an existing one. Infinispan takes it for
 * new, because memory had none, and would report its replacement to listeners as a creation.
 */
final class Loaded extends BaseAsyncInterceptor {
    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        if (command instanceof WriteCommand write) {
            if (command instanceof DataCommand one) {
                note(context, one.getKey());
            } else {
                write.getAffectedKeys().forEach(key -> note(context, key));
            }
        }
        return invokeNext(context, command);
    }

    private static void note(InvocationContext context, Object key) {
        if (context.lookupEntry(key) instanceof MVCCEntry<?, ?> entry && entry.isCreated()
                && entry.getValue() != null && !entry.isChanged()) {
            entry.setCreated(false);
        }
    }
}
