package io.entresol;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** Threads that call. */
final class Callers {
    /** Null where Java has no virtual threads. */
    private static final MethodHandle IS_VIRTUAL = isVirtual();

    private Callers() {
    }

    /** Whether the calling thread may wait in native code: a virtual one would hold up others. */
    static boolean mayWait() {
        if (IS_VIRTUAL == null) {
            return true;
        }
        try {
            return !(boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Throwable unexpected) {
            throw new AssertionError("Thread.isVirtual throws nothing", unexpected);
        }
    }

    private static MethodHandle isVirtual() {
        try {
            return MethodHandles.publicLookup().findVirtual(
                    Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (NoSuchMethodException | IllegalAccessException older) {
            return null;
        }
    }
}
