package io.entresol.infinispan;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.util.concurrent.Executor;

/**
 * The Netty event loop that the calling thread runs. The answer to a request of a server's loop
 * goes to that loop, which has the client's connection; another loop would only pass it on.
 */
final class EventLoop {
    /** Null where there is no Netty. */
    private static final MethodHandle CURRENT = current();

    private EventLoop() {
    }

    /** The calling thread's loop, or {@code otherwise} if it runs none. */
    static Executor orElse(Executor otherwise) {
        if (CURRENT == null) {
            return otherwise;
        }
        try {
            Executor loop = (Executor) CURRENT.invoke();
            return loop == null ? otherwise : loop;
        } catch (Throwable unexpected) {
            return otherwise;
        }
    }

    private static MethodHandle current() {
        try {
            Class<?> map = Class.forName("io.netty.util.internal.ThreadExecutorMap");
            return MethodHandles.publicLookup().unreflect(map.getMethod("currentExecutor"));
        } catch (ReflectiveOperationException none) {
            return null;
        }
    }
}
