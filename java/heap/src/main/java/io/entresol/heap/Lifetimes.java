package io.entresol.heap;

import io.entresol.heap.engine.Native;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What a strict heap knows of each handle that was freed since it was opened: how often. A block or
 * accessor remembers the count of its handle when it was made, and is stale once that is passed.
 */
final class Lifetimes {
    private final ConcurrentHashMap<Long, Long> freed = new ConcurrentHashMap<>();

    /** How often {@code handle} was freed; it must be live. */
    long current(AnyHeap heap, long handle) {
        requireLive(heap, handle);
        return freed.getOrDefault(handle, 0L);
    }

    /** Refuses a handle that was freed since its count was {@code lifetime}. */
    void require(AnyHeap heap, long handle, long lifetime) {
        if (freed.getOrDefault(handle, 0L) != lifetime) {
            throw new IllegalStateException("block " + handle + " was freed");
        }
    }

    void end(long handle) {
        freed.merge(handle, 1L, Long::sum);
    }

    private static void requireLive(AnyHeap heap, long handle) {
        if (Native.heapIsLive(heap.address(), handle) != 1) {
            throw new IllegalStateException(handle + " is the handle of no live block");
        }
    }
}
