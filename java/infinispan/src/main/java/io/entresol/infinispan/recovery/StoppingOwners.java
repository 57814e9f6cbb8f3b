package io.entresol.infinispan.recovery;

import org.infinispan.commands.VisitableCommand;
import org.infinispan.commands.write.WriteCommand;
import org.infinispan.commons.IllegalLifecycleStateException;
import org.infinispan.context.InvocationContext;
import org.infinispan.interceptors.BaseAsyncInterceptor;
import org.infinispan.interceptors.InvocationExceptionFunction;
import org.infinispan.remoting.RemoteException;
import org.infinispan.statetransfer.OutdatedTopologyException;

/**
 * Tries writes again that met a backup whose cache was about to stop. The backup leaves the cache's
 * cluster as it stops, and in the next topology other nodes own its entries. Infinispan itself
 * tries all requests to an owner again, except writes that a primary owner sends its backups: there
 * the error of the stopping cache would be the answer to the write.
 */
public final class StoppingOwners extends BaseAsyncInterceptor {
    private final InvocationExceptionFunction<VisitableCommand> later =
            (context, command, failure) -> {
                throw isOfStoppingBackup(failure) ? OutdatedTopologyException.RETRY_NEXT_TOPOLOGY
                        : failure;
            };

    @Override
    public Object visitCommand(InvocationContext context, VisitableCommand command) {
        return command instanceof WriteCommand ? invokeNextAndExceptionally(context, command, later)
                : invokeNext(context, command);
    }

    private static boolean isOfStoppingBackup(Throwable failure) {
        Throwable cause = failure;
        while (cause instanceof RemoteException && cause.getCause() != null) {
            cause = cause.getCause();
        }
        // One's own cache that stops has nothing to wait for.
        return cause != failure && cause instanceof IllegalLifecycleStateException;
    }
}
