package io.entresol.heap;

import io.entresol.heap.engine.Native;
import java.util.concurrent.ConcurrentHashMap;

/**
 * How often each handle was freed since a strict heap was opened. A block or accessor remembers the
 * count of its handle at its creation, and is stale once the count is higher. The end of a block is
 * counted before its handle can be given to another block. If the end is undone, the count goes
 * back before the block can be found again.
 */
final class Lifetimes {
    /** In place of a count: the block's bytes are kept for who reads it, whether it is live or not. */
    static final long KEPT = -1;

    private final ConcurrentHashMap<Long, Long> freed = new ConcurrentHashMap<>();

    /** How often {@code handle} was freed; it must be live. */
    long current(AnyHeap heap, long handle) {
        // Before the look: who frees the block meanwhile counts first.
        long lifetime = freed.getOrDefault(handle, 0L);
        if (!isLive(heap, handle)) {
            throw new IllegalStateException(handle + " is the handle of no live block");
        }
        return lifetime;
    }

    /** Refuses a handle that was freed since its count was {@code lifetime}. */
    void require(long handle, long lifetime) {
        if (lifetime != KEPT && freed.getOrDefault(handle, 0L) != lifetime) {
            throw wasFreed(handle);
        }
    }

    /** Frees a block, unless that was done since its handle's count was {@code lifetime}. */
    void free(AnyHeap heap, long handle, long lifetime, boolean transactional) {
        freed.putIfAbsent(handle, 0L);
        if (!freed.replace(handle, lifetime, lifetime + 1)) {
            throw wasFreed(handle);
        }
        try {
            heap.free(handle, transactional);
        } catch (RuntimeException failure) {
            // What failed to become durable may be done.
            if (isLive(heap, handle)) {
                goOn(handle);
            }
            throw failure;
        }
    }

    /** Counts the end of a block. */
    void end(long handle) {
        freed.merge(handle, 1L, Long::sum);
    }

    /** Takes the end of a block back. */
    void goOn(long handle) {
        freed.merge(handle, -1L, Long::sum);
    }

    private static boolean isLive(AnyHeap heap, long handle) {
        return Native.heapIsLive(heap.address(), handle) == 1;
    }

    private static IllegalStateException wasFreed(long handle) {
        return new IllegalStateException("block " + handle + " was freed");
    }
}
